"""Bookkeeping of Dagster runs: names, the Dagster home, run locks, loaded code, retries and records."""
