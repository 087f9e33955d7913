"""Source records from the rows of a structured file.

Problems and notes are stored in the corpus manifest, so do not reword them. Keep out: parsing (`formats.py`), and how
chunks are joined (`chunks.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from graphrag_pipeline.inputs.chunks import describe_notes, is_chunk_file, join_chunks
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
from graphrag_pipeline.inputs.record_filters import keep_passing, parse_filters, passes_all
from graphrag_pipeline.inputs.record_values import (
    as_iso_date,
    as_text,
    column_names,
    exceeds_depth,
    find_column,
    value_of,
    without_columns,
)
from graphrag_pipeline.inputs.source_records import SourceRecord, make_record, problem_record
from graphrag_pipeline.settings.input import InputSettings

_MAX_COLUMNS_NAMED = 20
MAX_NESTING = 100
"""Most lists and objects inside each other in a record; deeper ones exhaust Python's stack later."""
_REPEATED = "is already that of"
_REPEATED_NAME = re.compile(r"(.*)#\d+#*", re.DOTALL)


def read_rows(path: str, format: str, data: bytes, settings: InputSettings) -> list[SourceRecord]:
    rows = [_refuse_deep(row) for row in _iterate_rows(format, data, settings)]
    valid = [row.values for row in rows if row.values is not None]
    if not rows:
        raise UnreadableInput("empty: no rows")
    if not valid:
        raise DamagedInput(f"no valid row; {rows[0].problem}")
    if not any(find_column(values, settings.text_column) for values in valid):
        found = sorted({name for values in valid for name in column_names(values)})
        more = ", ..." if len(found) > _MAX_COLUMNS_NAMED else ""
        raise UnreadableInput(
            f"no column {settings.text_column!r}; found: {', '.join(found[:_MAX_COLUMNS_NAMED])}{more}; "
            "name the one that holds the text in input.text_column"
        )
    if is_chunk_file(valid, settings):
        return keep_passing(list(_read_chunks(path, rows, settings)), parse_filters(settings.filters))
    seen: dict[str, str] = {}  # record -> its place in the file
    return [_read_row(path, row, settings, seen) for row in _keep_passing_rows(path, rows, settings)]


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


def _iterate_rows(format: str, data: bytes, settings: InputSettings) -> Iterator[Row]:
    if format == "csv":
        return read_csv(data, settings.text_column)
    if format == "json":
        return read_json(data)
    return read_jsonl(data) if format == "jsonl" else read_parquet(data, MAX_UNZIPPED_RATIO)


def _refuse_deep(row: Row) -> Row:
    if row.values is None or not exceeds_depth(row.values, MAX_NESTING):
        return row
    problem = f"{row.where}: its values are nested more than {MAX_NESTING} deep"
    return replace(row, values=None, problem=problem)


def _read_row(path: str, row: Row, settings: InputSettings, seen: dict[str, str]) -> SourceRecord:
    """Make the record of one row and add its name to `seen`; a duplicate id is a problem and gets a unique name."""
    own_id = as_text(value_of(row.values or {}, settings.id_column)).strip()
    record, problem = own_id or f"#{row.number}", row.problem
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
    key_paths = {key_path for column in used if (key_path := find_column(values, column))}
    return make_record(
        path,
        record,
        len(text.encode()),
        title or f"{PurePosixPath(path).stem} {record}",
        text,
        creation_date,
        without_columns(values, key_paths),
    )
