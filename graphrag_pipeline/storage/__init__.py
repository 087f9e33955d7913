"""Storage of a root: stage tables and heads, snapshots, locks, vectors, and the store that machines share."""
