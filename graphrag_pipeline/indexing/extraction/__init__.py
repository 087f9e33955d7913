"""Extraction of entities, relationships and claims from one document, by rules or by a chat model."""
