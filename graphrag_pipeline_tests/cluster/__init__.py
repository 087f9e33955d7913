"""An index by several hosts for real: Dagster's queue, Celery, PostgreSQL, Redis and an S3 server."""
