"""Publishing: contract tables and adjacency joined from stage tables, the candidate, and its checks."""
