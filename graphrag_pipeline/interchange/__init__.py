"""Exchange with other tools: import of Microsoft GraphRAG's output as a snapshot, and exports of a snapshot."""

EXPORT_NAMES = ("graphrag", "graphml", "csv")
"""Formats of an export. The command line shows them without loading their writers, which need numpy."""
