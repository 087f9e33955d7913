"""The key of a document in links, by which readers of a root and of each view of it find the same text.

It is the id of the document. A row without an id of its own has another id in a view, since a view counts its own rows;
its key is a hash of its path and text, which tells nothing about other rows. Keep out: other lookups (`lookup.py`).
"""

from __future__ import annotations

import re

import pyarrow.compute as pc

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.inputs.record_filters import is_row_number
from graphrag_pipeline.query.index_reader import SnapshotReader
from graphrag_pipeline.storage.snapshots import Snapshot

_KEY = re.compile(r"text-[0-9a-f]{32}")


def shared_key(snapshot: Snapshot, document_id: str) -> str:
    """Return the key of a document of a snapshot; its id if the snapshot does not have it."""
    row = int(snapshot.rows_of("documents", [document_id])[0])
    if row < 0:
        return document_id
    [found] = snapshot.take("documents", [row], ["path", "record", "text"])
    return _key_of(found["path"], found["text"]) if is_row_number(found["record"] or "") else document_id


def find_by_shared_key(reader: SnapshotReader, key: str) -> list[int]:
    """Return the rows of the documents with a key that is no id; equal texts of one file have one key."""
    if not _KEY.fullmatch(key):
        return []
    documents = reader.snapshot.table("documents")
    rows = pc.indices_nonzero(pc.starts_with(pc.fill_null(documents["record"], ""), "#")).to_pylist()
    found = reader.snapshot.take("documents", rows, ["path", "text"])
    return [row for row, one in zip(rows, found, strict=True) if _key_of(one["path"], one["text"]) == key]


def _key_of(path: str, text: str) -> str:
    return f"text-{stable_hash(path, text)[:32]}"
