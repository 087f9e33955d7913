"""Helpers that read and run the pages of the documentation, and make their samples and pictures."""
