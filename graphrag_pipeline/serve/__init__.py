"""The server of published indexes: searches and records over HTTP, read only (`graphrag-pipeline serve`).

Keep out: searching (`query/`), pages of records (`reading/`), and who may read what (`access/`).
"""
