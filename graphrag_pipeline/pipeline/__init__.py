"""The stage graph of a root: stages, staleness, plans, progress, retention and forgetting."""
