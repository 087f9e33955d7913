"""Running the stages through Dagster: index runs, stage runs, their records, costs and locks."""
