"""Index runs: find what is stale, run it through Dagster in this process, publish."""
