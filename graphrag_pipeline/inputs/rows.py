"""Source records from the rows of a structured file.

Problems and notes are stored in the corpus manifest, so do not reword them. Keep out: parsing (`formats.py`), and how
chunks are joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from graphrag_pipeline.inputs.conversion import read_sheets
from graphrag_pipeline.inputs.formats import (
    MAX_UNZIPPED_RATIO,
    DamagedInput,
    Row,
    UnreadableInput,
    normalize_text,
    read_csv,
    read_json,
    read_jsonl,
    read_parquet,
    replace_stray_nul,
)
from graphrag_pipeline.inputs.source_records import (
    KeyPath,
    SourceRecord,
    as_integer,
    as_iso_date,
    as_text,
    canonical_json,
    column_names,
    exceeds_depth,
    find_column,
    keep_passing,
    make_record,
    parse_filters,
    passes_all,
    problem_record,
    value_of,
    without_columns,
)
from graphrag_pipeline.settings.input import TEXT_COLUMN, InputSettings
from graphrag_pipeline.tables import CHUNK_KINDS, TITLE_CHUNK

_MAX_COLUMNS_NAMED = 20
_MAX_ROW_TITLE = 80
"""Characters of a value that is the title of its row."""
MAX_NESTING = 100
"""Most lists and objects inside each other in a record; deeper ones exhaust Python's stack later."""
_REPEATED = "is already that of"
_REPEATED_NAME = re.compile(r"(.*)#\d+#*", re.DOTALL)


def find_rows(format: str, data: bytes, settings: InputSettings) -> Iterable[Row] | None:
    """Return the rows of a file; None if it has none by its format or content."""
    if format == "csv":
        return read_csv(data, settings.text_column)
    if format == "json":
        return read_json(data)
    if format == "jsonl":
        return read_jsonl(data)
    if format == "parquet":
        return read_parquet(data, MAX_UNZIPPED_RATIO)
    return read_sheets(data, settings) if format == "xlsx" else None


def read_rows(path: str, found: Iterable[Row], settings: InputSettings) -> list[SourceRecord]:
    rows = [_refuse_deep(row) for row in found]
    valid = [row.values for row in rows if row.values is not None]
    if not rows:
        raise UnreadableInput("empty: no rows")
    if not valid:
        raise DamagedInput(f"no valid row; {rows[0].problem}")
    named = ((_name_of(row, settings), row.values) for row in rows if row.values is not None)
    mappings = [settings.mapping_of(path, name, values) for name, values in named]
    for mapping in settings.tables:
        its = [values for values, one in zip(valid, mappings, strict=True) if one is mapping]
        for column in mapping.columns if its else ():
            _check_column(column, its, "correct input.tables")
    if not any(find_column(values, settings.text_column) for values in valid):
        if any(mappings) or settings.text_column == TEXT_COLUMN:
            return _read_values(path, rows, settings, is_known=all(mappings))
        _check_column(settings.text_column, valid, "name the one that holds the text in input.text_column")
    if is_chunk_file(valid, settings):
        return keep_passing(list(_read_chunks(path, rows, settings)), parse_filters(settings.filters))
    seen: dict[str, str] = {}  # record -> its place in the file
    return [_read_row(path, row, settings, seen) for row in _keep_passing_rows(path, rows, settings)]


def _check_column(column: str, rows: list[dict[str, Any]], advice: str) -> None:
    if any(find_column(values, column) for values in rows):
        return
    found = sorted({name for values in rows for name in column_names(values)})
    more = ", ..." if len(found) > _MAX_COLUMNS_NAMED else ""
    raise UnreadableInput(f"no column {column!r}; found: {', '.join(found[:_MAX_COLUMNS_NAMED])}{more}; {advice}")


def _read_values(path: str, rows: list[Row], settings: InputSettings, is_known: bool) -> list[SourceRecord]:
    """Return the records of rows without a text: each says its values, such as "service: billing-api; tier: 1."."""
    told = [replace(row, values=row.values and _with_text(path, row.values, settings)) for row in rows]
    seen: dict[str, str] = {}
    records = [_read_row(path, row, settings, seen) for row in _keep_passing_rows(path, told, settings)]
    said = f"no column {settings.text_column!r}: rows are read as their values"
    note = f"{said}; if a column holds texts, name it in input.text_column"
    return records if is_known or not records else [replace(records[0], note=records[0].note or note), *records[1:]]


def _with_text(path: str, values: dict[str, Any], settings: InputSettings) -> dict[str, Any]:
    """Return the values of a row with its text, and a title from its first value that is short."""
    said = {name: " ".join(_say(value_of(values, name)).split()) for name in column_names(values)}
    said = {name: text for name, text in said.items() if text and name != settings.id_column}
    first = next((text for text in said.values() if len(text) <= _MAX_ROW_TITLE), "")
    title = {settings.title_column: f"{PurePosixPath(path).stem}: {first}"} if first else {}
    text = "; ".join(f"{name}: {text}" for name, text in said.items())
    return {**title, **values, settings.text_column: f"{text}." if text else ""}


def _say(value: Any) -> str:
    """Return a value as words: a list of plain values with commas, anything else as text."""
    is_plain = isinstance(value, list) and not any(isinstance(item, dict | list) for item in value)
    return ", ".join(as_text(item) for item in value) if is_plain else as_text(value)


def _keep_passing_rows(path: str, rows: list[Row], settings: InputSettings) -> list[Row]:
    """Return the rows that pass `input.filters`, numbered as if the file had these only.

    Each row is judged alone, before ids are compared, so that no row hides another one that passes.
    """
    filters = parse_filters(settings.filters)
    alone = [_read_row(path, row, settings, {}) for row in rows] if filters else []
    if all(passes_all(record, filters) for record in alone):
        return rows
    judged = zip(rows, alone, strict=True)
    kept = [row for row, record in judged if not record.problem and passes_all(record, filters)]
    return [
        replace(row, number=number, where=f"row {number} of those that pass input.filters")
        for number, row in enumerate(kept, start=1)
    ]


def _read_chunks(path: str, rows: list[Row], settings: InputSettings) -> Iterator[SourceRecord]:
    """Yield one record per document, with its notes, and one per row that cannot be read."""
    seen: set[str] = set()

    def unique(record: str) -> str:
        while record in seen:
            record += "#"
        seen.add(record)
        return record

    documents = join_chunks(rows, settings)
    names = [unique(document.record) for document in documents]
    for name, document in zip(names, documents, strict=True):
        note = describe_notes(document)
        if not document.text:
            yield problem_record(path, note, name)
            continue
        record = make_record(
            path,
            name,
            len(document.text.encode()),
            document.title,
            document.text,
            document.creation_date,
            document.values,
            document.chunks,
        )
        yield replace(record, note=note or None)
    for row in rows:
        if row.values is None:
            yield problem_record(path, row.problem or f"{row.where}: no values", unique(f"#{row.number}"))


def _refuse_deep(row: Row) -> Row:
    if row.values is None or not exceeds_depth(row.values, MAX_NESTING):
        return row
    problem = f"{row.where}: its values are nested more than {MAX_NESTING} deep"
    return replace(row, values=None, problem=problem)


def _read_row(path: str, row: Row, settings: InputSettings, seen: dict[str, str]) -> SourceRecord:
    """Make the record of one row and add its name to `seen`; a duplicate id is a problem and gets a unique name."""
    record, problem = _name_of(row, settings), row.problem
    if record in seen:
        problem = f"{row.where}: id {record!r} {_REPEATED} {seen[record]}; give it one of its own"
        record = f"{record}#{row.number}"
        while record in seen:
            record += "#"
    seen[record] = row.where
    if problem or row.values is None:
        return problem_record(path, problem or f"{row.where}: no values", record)
    text = value_of(row.values, settings.text_column)
    if isinstance(text, dict | list | bytes):
        kind = type(text).__name__
        return problem_record(path, f"{row.where}: {settings.text_column!r} holds no text but a {kind}", record)
    text = replace_stray_nul(normalize_text(as_text(text)))
    if not text.strip():
        return problem_record(path, f"{row.where}: empty, no text in {settings.text_column!r}", record)
    if "\x00" in text:
        return problem_record(path, f"{row.where}: binary data (NUL character) in {settings.text_column!r}", record)
    return _make_row_record(path, record, text, row.values, settings)


def _name_of(row: Row, settings: InputSettings) -> str:
    """Return the id of a row, else its number."""
    return as_text(value_of(row.values or {}, settings.id_column)).strip() or f"#{row.number}"


def find_repeated_id(record: SourceRecord) -> str | None:
    """Return the id for which a row was refused, since a row before it has that id; None for any other record."""
    named = _REPEATED_NAME.fullmatch(record.record)
    return normalize_text(named[1]) if named and record.problem and _REPEATED in record.problem else None


def _make_row_record(
    path: str, record: str, text: str, values: dict[str, Any], settings: InputSettings
) -> SourceRecord:
    used = [settings.id_column, settings.title_column, settings.text_column]
    title = " ".join(as_text(value_of(values, settings.title_column)).split())
    creation_date = as_iso_date(value_of(values, settings.creation_date_column))
    if creation_date:
        used.append(settings.creation_date_column)
    mapping = settings.mapping_of(path, record, values)
    note = None
    if mapping:
        used = [column for column in used if column not in mapping.columns]
        name = " ".join(as_text(value_of(values, mapping.entity)).split())
        title, note = name or title, None if name else f"no value of {mapping.entity!r}, so the row is no entity"
    key_paths = {key_path for column in used if (key_path := find_column(values, column))}
    made = make_record(
        path,
        record,
        len(text.encode()),
        title or f"{PurePosixPath(path).stem} {record}",
        text,
        creation_date,
        without_columns(values, key_paths),
    )
    return replace(made, note=note)


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
    """Join the rows of each document, in the order of first rows; rows of several documents can be mixed.

    The texts of a document have a blank line between them. Text units are cut along the bounds of its chunks
    (`indexing/chunk_aggregation.py`). No row is dropped silently: defects are listed in the notes of the document.
    """
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
