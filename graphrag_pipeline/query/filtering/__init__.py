"""Filters on documents, and the part of an index that passes them."""
