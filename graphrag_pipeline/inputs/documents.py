"""Source records from input files or their rows, and the two tables made of them.

Pure: bytes in, records out. A record that cannot become a document has a `problem` and is listed in the manifest, so
that no input disappears silently. Problems and notes are stored in the manifest, so do not reword them. Keep out: the
disk (`files.py`), formats (`formats.py`), clocks and file times, because a touched file with equal content is the same
document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from graphrag_pipeline.errors import InputChangedError
from graphrag_pipeline.filesystem.fsspec_errors import describe_error
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.inputs.chunks import describe_notes, is_chunk_file, join_chunks
from graphrag_pipeline.inputs.conversion import convert_to_markdown
from graphrag_pipeline.inputs.formats import (
    CONVERTED,
    FORMATS,
    STRUCTURED,
    DamagedInput,
    Row,
    UnreadableInput,
    decode_text,
    find_guessed_encoding,
    normalize_text,
    read_csv,
    read_json,
    read_jsonl,
    read_parquet,
    replace_stray_nul,
)
from graphrag_pipeline.inputs.record_values import (
    as_iso_date,
    as_text,
    canonical_json,
    column_names,
    exceeds_depth,
    find_column,
    value_of,
    without_columns,
)
from graphrag_pipeline.settings.settings import InputSettings
from graphrag_pipeline.tables import CORPUS_MANIFEST, DOCUMENTS

_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)
_MAX_COLUMNS_NAMED = 20


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


def read_records(path: str, data: bytes, settings: InputSettings) -> list[SourceRecord]:
    """Read one file: one record for a text or office file, one per row for csv, json, jsonl and parquet.

    Rows that are chunks of documents make one record per document (see `chunks.py`), with a note on defects of its
    rows. Whatever a file raises is the problem of that file alone.

    Args:
        path: path relative to the input folder; it determines the ids and, by its extension, the format.
        data: the whole file.

    Returns:
        Records in file order with unique ids, at least one; an unusable record has a `problem`.

    Raises:
        MemoryError: the process may not have the memory that the file needs.
    """
    format = format_of(path)
    try:
        if format not in FORMATS.values():
            supported = ", ".join(f".{extension}" for extension in FORMATS)
            named = f".{format}" if format else "without an extension"
            raise UnreadableInput(f"unsupported file type {named}; supported: {supported}")
        if not data.strip():
            raise UnreadableInput("empty")
        if format in STRUCTURED:
            records = _read_rows(path, format, data, settings)
        else:
            records = [_read_whole_file(path, format, data, settings)]
        return _note_guess(records, format, data)
    except UnreadableInput as problem:
        is_unknown = isinstance(problem, DamagedInput)
        return [problem_record(path, str(problem), n_bytes=len(data), is_unknown=is_unknown)]
    except MemoryError:
        raise
    except Exception as error:  # parsers raise errors of any kind, and a bad file must not stop the others
        problem_text = f"cannot be read as {format} ({describe_error(error)}); open it and save it again, or exclude it"
        return [problem_record(path, problem_text, n_bytes=len(data), is_unknown=True)]


def build_corpus_manifest(records: Iterable[SourceRecord]) -> pa.Table:
    """Build `tables.CORPUS_MANIFEST`: every record, with its problem if it has one."""
    columns = CORPUS_MANIFEST.schema.names
    return CORPUS_MANIFEST.from_rows([{name: getattr(record, name) for name in columns} for record in records])


def match_manifest(records: Iterable[SourceRecord], manifest: pa.Table) -> list[SourceRecord]:
    """Return the records if they match the manifest.

    Raises:
        InputChangedError: a file was added, edited or removed after the manifest was made; the message names the first.
    """
    found = list(records)
    listed = dict(zip(manifest["document_id"].to_pylist(), manifest["content_hash"].to_pylist(), strict=True))
    paths = dict(zip(manifest["document_id"].to_pylist(), manifest["path"].to_pylist(), strict=True))
    read = {record.document_id: record.content_hash for record in found}
    paths |= {record.document_id: record.path for record in found}
    changed = sorted(paths[id] for id in listed.keys() | read.keys() if listed.get(id) != read.get(id))
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise InputChangedError(f"input {changed[0]!r}{more}: changed while the index was being built; run it again")
    return found


def build_documents(records: Iterable[SourceRecord]) -> pa.Table:
    """Build `tables.DOCUMENTS`: every record without a problem."""
    columns = [name for name in DOCUMENTS.schema.names if name != "id"]
    return DOCUMENTS.from_rows(
        [
            {"id": record.document_id} | {name: getattr(record, name) for name in columns}
            for record in records
            if record.problem is None
        ]
    )


def _note_guess(records: list[SourceRecord], format: str, data: bytes) -> list[SourceRecord]:
    """Add a note to the first record of a text file whose encoding had to be guessed."""
    guessed = None if format in CONVERTED or format == "parquet" else find_guessed_encoding(data)
    if not guessed or not records or records[0].problem:
        return records
    note = f"encoding guessed as {guessed}; if letters are wrong, save the file as UTF-8"
    first = records[0].note
    return [replace(records[0], note=f"{first}; {note}" if first else note), *records[1:]]


def _read_whole_file(path: str, format: str, data: bytes, settings: InputSettings) -> SourceRecord:
    title, text = convert_to_markdown(data, format, settings) if format in CONVERTED else ("", decode_text(data))
    if not text.strip():
        raise UnreadableInput(
            "empty: no text in it (a scanned page needs OCR first)" if format in CONVERTED else "empty"
        )
    if not title and format != "txt":
        heading = _HEADING.search(text)
        title = heading.group(1) if heading else ""
    return _make_record(path, "", len(data), title or PurePosixPath(path).stem, text, None, {})


def _read_rows(path: str, format: str, data: bytes, settings: InputSettings) -> list[SourceRecord]:
    rows = [_refuse_deep(row, settings.max_nesting) for row in _iterate_rows(format, data, settings)]
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
        return list(_read_chunks(path, rows, settings))
    seen: dict[str, str] = {}  # record -> its place in the file
    return [_read_row(path, row, settings, seen) for row in rows]


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
        record = _make_record(
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
    return read_jsonl(data) if format == "jsonl" else read_parquet(data)


def _refuse_deep(row: Row, max_nesting: int) -> Row:
    if row.values is None or not exceeds_depth(row.values, max_nesting):
        return row
    problem = f"{row.where}: its values are nested more than input.max_nesting = {max_nesting} deep"
    return replace(row, values=None, problem=problem)


def _read_row(path: str, row: Row, settings: InputSettings, seen: dict[str, str]) -> SourceRecord:
    """Make the record of one row and add its name to `seen`; a duplicate id is a problem and gets a unique name."""
    own_id = as_text(value_of(row.values or {}, settings.id_column)).strip()
    record, problem = own_id or f"#{row.number}", row.problem
    if record in seen:
        problem = f"{row.where}: id {record!r} is already that of {seen[record]}; give it one of its own"
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


def _make_row_record(
    path: str, record: str, text: str, values: dict[str, Any], settings: InputSettings
) -> SourceRecord:
    used = [settings.id_column, settings.title_column, settings.text_column]
    title = " ".join(as_text(value_of(values, settings.title_column)).split())
    creation_date = as_iso_date(value_of(values, settings.creation_date_column))
    if creation_date:
        used.append(settings.creation_date_column)
    key_paths = {key_path for column in used if (key_path := find_column(values, column))}
    return _make_record(
        path,
        record,
        len(text.encode()),
        title or f"{PurePosixPath(path).stem} {record}",
        text,
        creation_date,
        without_columns(values, key_paths),
    )


def _make_record(
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
