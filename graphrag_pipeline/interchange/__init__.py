"""Indexes of other systems: Microsoft GraphRAG's output, mended into contract tables and published as a snapshot."""
