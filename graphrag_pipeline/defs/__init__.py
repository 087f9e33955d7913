"""Everything that knows Dagster: assets, checks, jobs, resources, and running them from the command line."""
