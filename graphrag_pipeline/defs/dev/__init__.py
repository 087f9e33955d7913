"""The processes of the command `dev`: Dagster, a daemon that goes on with backfills at once, a watch of settings."""
