"""What is on disk: input files, stage tables and heads, snapshots, vector tables."""
