"""Settings of a root: one frozen model per section, read from settings.yaml and the environment."""
