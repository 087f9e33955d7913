"""Searches over a published snapshot: one file per method, index reader, context packing, text unit selection."""
