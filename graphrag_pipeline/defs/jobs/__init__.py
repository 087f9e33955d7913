"""Dagster jobs: build, reindex, query, batch and evaluation, one module each."""
