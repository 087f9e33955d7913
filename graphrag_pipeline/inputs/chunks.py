"""Documents from structured files whose rows are small typed chunks.

A chunk file has the columns `input.document_id_column`, `type_column` and `page_column`; a column with an empty name is
not required. The rows of one document id become one document: their texts with a blank line between them, and the
bounds, type, page and id of each chunk. Text units are cut along these bounds (`indexing/chunk_aggregation.py`). No row
is dropped silently: defects are listed in the notes of the document, and a row without a document id becomes a separate
document. Notes are stored in the corpus manifest, so do not reword them. Keep out: ids, hashes and tables
(`documents.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphrag_pipeline.inputs.formats import Row, normalize_text
from graphrag_pipeline.inputs.record_values import (
    KeyPath,
    as_integer,
    as_iso_date,
    as_text,
    canonical_json,
    find_column,
    value_of,
    without_columns,
)
from graphrag_pipeline.settings.input import InputSettings
from graphrag_pipeline.tables import CHUNK_KINDS, TITLE_CHUNK

BETWEEN = "\n\n"
_MAX_PAGE = 2**31 - 1
_MAX_TITLE = 200  # characters
_MAX_NOTES = 5


@dataclass(frozen=True)
class ChunkedDocument:
    """A document made of chunks.

    Attributes:
        record: its id in the file; "#row" for a row without one.
        text: texts of the chunks, joined by `BETWEEN`; "" without any text.
        chunks: start, end (character offsets into `text`), type, page and id of each chunk, in the order of the file.
        values: values that all its rows share, without the columns that have a meaning.
        notes: defects of its rows, as text.
    """

    record: str
    title: str
    text: str
    chunks: list[dict[str, Any]]
    creation_date: str | None
    values: dict[str, Any]
    notes: tuple[str, ...]


def is_chunk_file(rows: Sequence[dict[str, Any]], settings: InputSettings) -> bool:
    """Whether rows are chunks: each of the named columns occurs in some row."""
    columns = [settings.document_id_column, settings.type_column, settings.page_column]
    named = [column for column in columns if column]
    return bool(columns[0]) and all(any(find_column(values, column) for values in rows) for column in named)


def join_chunks(rows: Iterable[Row], settings: InputSettings) -> list[ChunkedDocument]:
    """Join the rows of each document, in the order of first rows; rows of several documents can be mixed."""
    drafts: dict[tuple[str, int], _DocumentDraft] = {}
    for row in rows:
        if row.values is None:
            continue
        own_id = normalize_text(as_text(value_of(row.values, settings.document_id_column))).strip()
        key = (own_id, 0 if own_id else row.number)
        if key not in drafts:
            drafts[key] = _DocumentDraft(own_id or f"#{row.number}", settings)
            if not own_id:
                drafts[key].notes.append(f"{row.where}: no {settings.document_id_column!r}, a document of its own")
        drafts[key].add(row.where, row.values)
    return [draft.finish() for draft in drafts.values()]


def describe_notes(document: ChunkedDocument) -> str:
    """Return the notes on a document in one line; "" without notes."""
    if not document.notes:
        return ""
    more = f"; and {len(document.notes) - _MAX_NOTES} more" if len(document.notes) > _MAX_NOTES else ""
    kept = "" if document.text else " has no text"
    return f"document {document.record!r}{kept}: {'; '.join(document.notes[:_MAX_NOTES])}{more}"


@dataclass
class _DocumentDraft:
    """A document while its rows are read."""

    record: str
    settings: InputSettings
    notes: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    chunks: list[dict[str, Any]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    length: int = 0
    last_page: int | None = None

    def add(self, where: str, values: dict[str, Any]) -> None:
        self.rows.append(values)
        text = self._read_text(where, values)
        if not text:
            return
        start = self.length + len(BETWEEN) if self.texts else 0
        self.length = start + len(text)
        self.texts.append(text)
        chunk_id = normalize_text(as_text(value_of(values, self.settings.id_column))).strip() or None
        self.chunks.append(
            {
                "start": start,
                "end": self.length,
                "type": self._read_type(where, values),
                "page": self._read_page(where, values),
                "id": chunk_id,
            }
        )

    def finish(self) -> ChunkedDocument:
        used = [self.settings.document_id_column, self.settings.type_column, self.settings.page_column]
        used += [self.settings.id_column, self.settings.title_column, self.settings.text_column]
        dates = [as_iso_date(value_of(values, self.settings.creation_date_column)) for values in self.rows]
        creation_date = next(filter(None, dates), None)
        if creation_date:
            used.append(self.settings.creation_date_column)
        return ChunkedDocument(
            self.record,
            self._title(),
            BETWEEN.join(self.texts),
            self.chunks,
            creation_date,
            _shared_values(self.rows, [column for column in used if column]),
            tuple(self.notes),
        )

    def _read_text(self, where: str, values: dict[str, Any]) -> str:
        value, column = value_of(values, self.settings.text_column), self.settings.text_column
        text = "" if isinstance(value, dict | list | bytes) else normalize_text(as_text(value)).strip()
        if isinstance(value, dict | list | bytes):
            self.notes.append(f"{where}: {column!r} holds no text but a {type(value).__name__}, left out")
        elif not text:
            self.notes.append(f"{where}: no text in {column!r}, left out")
        elif "\x00" in text:
            self.notes.append(f"{where}: binary data (NUL character) in {column!r}, left out")
            return ""
        return text

    def _read_type(self, where: str, values: dict[str, Any]) -> str:
        if not self.settings.type_column:
            return "paragraph"
        written = normalize_text(as_text(value_of(values, self.settings.type_column))).replace("\x00", "").strip()
        kind = written.casefold()
        if kind not in CHUNK_KINDS:
            self.notes.append(f"{where}: type {written!r} is not known, read as a paragraph")
        return kind or "paragraph"

    def _read_page(self, where: str, values: dict[str, Any]) -> int | None:
        value = value_of(values, self.settings.page_column) if self.settings.page_column else None
        page = as_integer(value)
        if page is None or not -_MAX_PAGE <= page <= _MAX_PAGE:
            if as_text(value).strip():
                self.notes.append(f"{where}: page {as_text(value)[:40]!r} is no whole number, read as unknown")
            return None
        if self.last_page is not None and page < self.last_page:
            self.notes.append(f"{where}: page {page} comes after page {self.last_page}, kept where it is")
        self.last_page = page
        return page

    def _title(self) -> str:
        """Return the first title of a row, else the first chunk of type title, else the document's id."""
        named = (" ".join(as_text(value_of(values, self.settings.title_column)).split()) for values in self.rows)
        written = (text for text, chunk in zip(self.texts, self.chunks, strict=True) if _is_title(chunk))
        return next(filter(None, named), "") or " ".join(next(written, "").split())[:_MAX_TITLE] or self.record


def _is_title(chunk: dict[str, Any]) -> bool:
    return CHUNK_KINDS.get(chunk["type"]) == TITLE_CHUNK


def _shared_values(rows: list[dict[str, Any]], columns: list[str]) -> dict[str, Any]:
    """Return the values that all rows share, without some columns."""
    key_paths: set[KeyPath] = {path for values in rows for column in columns if (path := find_column(values, column))}
    rests = [without_columns(values, key_paths) for values in rows]
    return {
        key: value
        for key, value in rests[0].items()
        if all(key in rest and canonical_json(rest[key]) == canonical_json(value) for rest in rests[1:])
    }
