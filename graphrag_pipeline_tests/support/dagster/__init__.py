"""Helpers that run Dagster, or work on a root, in separate processes."""
