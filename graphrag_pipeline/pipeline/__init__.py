"""The pipeline of a root: its stages, staleness, plans, progress, retention and forgetting."""
