"""Metadata filters on documents, and the view of an index that they leave."""
