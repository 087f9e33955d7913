"""Searches over a published snapshot: the reader of an index, the searches, answers and methods."""
