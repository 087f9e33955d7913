"""The embedded engine: works without a model server, a key or a download."""
