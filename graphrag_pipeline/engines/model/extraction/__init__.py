"""Extraction of entities, relationships and claims by a chat model."""
