"""Helpers that replace or query models: scripted replies, clients, and roots that use the test model server."""
