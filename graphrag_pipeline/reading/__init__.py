"""Pages of a snapshot: one entity, report, document or community in full, for commands and servers.

Each function takes a `SnapshotReader` and returns a frozen page; under a filter, a page holds only records that pass.
Keep out: rendering, searching, and writing anything.
"""
