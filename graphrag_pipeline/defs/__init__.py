"""The Dagster side of the product: runs, assets, index runs, jobs and automation. Nothing else imports Dagster."""
