"""Engines: what fills the ports of the pipeline; each is a room of its own."""
