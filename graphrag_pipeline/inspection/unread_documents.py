"""The documents that a snapshot lacks because they could not be read, and those that were read with a note.

The list is that of the snapshot: it names what its run found, not what is in the input folder now. Keep out: the input
folder (`pipeline/detected_input.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from graphrag_pipeline.pipeline.published_documents import read_published
from graphrag_pipeline.storage.manifests import Manifest
from graphrag_pipeline.storage.table_store import TableStore

_TABLE = "corpus_manifest"


@dataclass(frozen=True)
class UnreadDocument:
    """A document that the snapshot lacks, or has with a note.

    Attributes:
        path: relative to the input folder.
        record: id or row number inside a structured file; "" for a whole file.
        problem: the reason why it could not be read, with the remedy; "" if it was read.
        note: an oddity of a document that was read; "" for none.
    """

    path: str
    record: str
    n_bytes: int
    problem: str
    note: str


def list_unread_documents(tables: TableStore, manifest: Manifest) -> list[UnreadDocument]:
    """Return the documents with a problem or a note, those with a problem first, then by path and record.

    An imported index was made without documents, so its list is empty.

    Args:
        tables: of the root that published the snapshot.
        manifest: of the snapshot.

    Raises:
        DamagedFileError: a file of the snapshot is missing or damaged.
    """
    columns = ["path", "record", "n_bytes", "problem", "note"]
    partitions = [name.partition("/")[2] for name in sorted(manifest.heads) if name.startswith(f"{_TABLE}/")]
    rows = (
        row
        for partition in partitions
        for row in read_published(tables, manifest, _TABLE, partition).select(columns).to_pylist()
        if row["problem"] or row["note"]
    )
    found = [
        UnreadDocument(row["path"], row["record"], row["n_bytes"], row["problem"] or "", row["note"] or "")
        for row in rows
    ]
    return sorted(found, key=lambda one: (not one.problem, one.path, one.record))
