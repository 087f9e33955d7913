"""From stage tables to a published snapshot: contract tables, adjacency, candidate and checks."""
