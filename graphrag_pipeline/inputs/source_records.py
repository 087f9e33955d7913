"""A source record: one future document, or the reason why it cannot become one; its id and its hash.

Keep out: reading records (`documents.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.inputs.formats import FORMATS, normalize_text
from graphrag_pipeline.inputs.record_values import canonical_json


@dataclass(frozen=True)
class SourceRecord:
    """One future document, or the reason why it cannot become one."""

    document_id: str
    path: str  # relative to the input folder, forward slashes
    record: str  # id of the record or "#row" in a structured file; "" for a whole file
    format: str
    n_bytes: int  # size of the file; in a structured file, of the record's text in UTF-8
    content_hash: str  # "" with a problem
    title: str
    text: str
    creation_date: str | None  # ISO 8601, as written in the record
    metadata: str  # JSON object, keys sorted
    problem: str | None
    chunks: list[dict[str, Any]] | None = None  # `tables.CHUNKS`, if a structured file holds the document in chunks
    note: str | None = None  # defects of its rows, although it was read
    is_unknown: bool = False  # with a problem: the content is not known, so the last known documents stay


def document_id_of(path: str, record: str = "") -> str:
    """Return the id of a document: a hash of its place in the input folder, so that an edited file keeps it."""
    return stable_hash("document", path, record)


def format_of(path: str) -> str:
    """Return the format for the extension in any case; an unsupported extension unchanged, "" without one."""
    extension = PurePosixPath(path).suffix.lstrip(".").lower()
    return FORMATS.get(extension, extension)


def problem_record(
    path: str, problem: str, record: str = "", n_bytes: int = 0, is_unknown: bool = False
) -> SourceRecord:
    """Make a record without a document."""
    own_id, format = document_id_of(path, record), format_of(path)
    return SourceRecord(own_id, path, record, format, n_bytes, "", "", "", None, "{}", problem, is_unknown=is_unknown)


def access_problem(error: OSError) -> str:
    """Return the problem of a file that cannot be opened or read."""
    return f"cannot be read ({error.strerror}); fix its permissions"


def make_record(
    path: str,
    record: str,
    n_bytes: int,
    title: str,
    text: str,
    creation_date: str | None,
    values: dict[str, Any],
    chunks: list[dict[str, Any]] | None = None,
) -> SourceRecord:
    title = normalize_text(title).replace("\x00", "").strip()
    metadata = normalize_text(canonical_json(values))
    return SourceRecord(
        document_id=document_id_of(path, record),
        path=path,
        record=normalize_text(record),
        format=format_of(path),
        n_bytes=n_bytes,
        content_hash=_hash_content(title, text, metadata, creation_date, chunks),
        title=title,
        text=text,
        creation_date=creation_date,
        metadata=metadata,
        problem=None,
        chunks=chunks,
    )


def _hash_content(
    title: str, text: str, metadata: str, creation_date: str | None, chunks: list[dict[str, Any]] | None
) -> str:
    chunks_key = [] if chunks is None else [canonical_json(chunks)]
    return stable_hash(title, text, metadata, creation_date or "", *chunks_key)


def rename_row(record: SourceRecord, name: str) -> SourceRecord:
    """Return a record of a structured file under another name, as if its row had been there; so its id changes."""
    is_titled_by_place = record.title in (record.record, f"{PurePosixPath(record.path).stem} {record.record}")
    title = f"{record.title.removesuffix(record.record)}{name}" if is_titled_by_place else record.title
    content_hash = _hash_content(title, record.text, record.metadata, record.creation_date, record.chunks)
    own_id = document_id_of(record.path, name)
    return replace(record, document_id=own_id, record=name, title=title, content_hash=content_hash)


def with_metadata(record: SourceRecord, metadata: str) -> SourceRecord:
    """Return a record with other metadata, a JSON object with sorted keys."""
    content_hash = _hash_content(record.title, record.text, metadata, record.creation_date, record.chunks)
    return replace(record, metadata=metadata, content_hash=content_hash)
