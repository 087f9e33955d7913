"""Exchange with other tools: import of Microsoft GraphRAG's output as a snapshot, and exports of a snapshot."""
