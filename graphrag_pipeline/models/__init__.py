"""Ports to models and the embedded engine that needs none."""
