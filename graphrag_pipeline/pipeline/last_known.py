"""The documents of the last index, for files and folders whose content is not known now.

A file that cannot be opened, converted or fetched is not deleted: what the index has of it stays until it can be read
again, or is gone. Keep out: which files that concerns (`inputs/files.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.inputs.source_records import SourceRecord, format_of
from graphrag_pipeline.storage.table_store import TableStore
from graphrag_pipeline.tables import STAGE_TABLES


class LastKnownDocuments:
    """The documents that the heads of a root hold; tables are read only if one is asked for."""

    def __init__(self, tables: TableStore, buckets: Sequence[str]) -> None:
        self._tables = tables
        self._buckets = buckets

    def find(self, path: str) -> list[SourceRecord]:
        """Return the documents of a file, or of all files below a folder, whose path ends with "/"; by path."""
        paths = self._documents["path"]
        is_wanted = pc.starts_with(paths, path) if path.endswith("/") else pc.equal(paths, path)
        rows = self._documents.filter(is_wanted).to_pylist()
        return sorted((self._record_of(row) for row in rows), key=lambda record: (record.path, record.record))

    def ids_of_contents(self, content_hashes: Collection[str]) -> list[str]:
        """Return the ids of the documents whose content is among these hashes; the paths may be others now."""
        is_wanted = pc.is_in(self._documents["content_hash"], value_set=pa.array(content_hashes, pa.string()))
        return list(self._documents["id"].filter(is_wanted).to_pylist())

    def _record_of(self, row: dict) -> SourceRecord:
        n_bytes = self._sizes.get((row["id"], row["content_hash"]), len(row["text"].encode()))
        own = {name: value for name, value in row.items() if name != "id"}
        return SourceRecord(document_id=row["id"], format=format_of(row["path"]), n_bytes=n_bytes, problem=None, **own)

    @cached_property
    def _documents(self) -> pa.Table:
        return self._read("documents")

    @cached_property
    def _sizes(self) -> dict[tuple[str, str], int]:
        """(document id, content hash) -> bytes, as the manifest has them."""
        rows = self._read("corpus_manifest").select(["document_id", "content_hash", "n_bytes"]).to_pylist()
        return {(row["document_id"], row["content_hash"]): row["n_bytes"] for row in rows}

    def _read(self, table: str) -> pa.Table:
        heads = [head for head in self._tables.heads(table, self._buckets).values() if head]
        return pa.concat_tables([STAGE_TABLES[table].schema.empty_table(), *map(self._tables.read_head, heads)])
