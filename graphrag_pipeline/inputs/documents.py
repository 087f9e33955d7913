"""Source records from input files or their rows, and the two tables made of them.

Pure: bytes in, records out. A record that cannot become a document has a `problem` and is listed in the manifest, so
that no input disappears silently. Problems and notes are stored in the manifest, so do not reword them. Keep out: the
disk (`files.py`), formats (`formats.py`), rows (`rows.py`), clocks and file times, because a touched file with equal
content is the same document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from graphrag_pipeline.errors import InputChangedError
from graphrag_pipeline.filesystem.fsspec_errors import describe_error
from graphrag_pipeline.inputs.conversion import convert_to_markdown, describe_hidden, find_html_encoding
from graphrag_pipeline.inputs.formats import (
    CONVERTED,
    FORMATS,
    DamagedInput,
    UnreadableInput,
    decode_text,
    describe_doubt,
    recode,
)
from graphrag_pipeline.inputs.labels import find_date, find_unread_date, key_of, read_front_matter, read_labels
from graphrag_pipeline.inputs.mail import find_undeclared_body, read_mail
from graphrag_pipeline.inputs.rows import find_rows, read_rows
from graphrag_pipeline.inputs.source_records import SourceRecord, format_of, make_record, problem_record
from graphrag_pipeline.settings.input import InputSettings
from graphrag_pipeline.tables import CORPUS_MANIFEST, DOCUMENTS
from graphrag_pipeline.text.structure import FRONT_MATTER, HIDDEN, TITLE, Structure, read_structure


def read_title(structure: Structure, front_matter: Mapping[str, Any]) -> str:
    """Return the title of a document in plain words on one line; "" without one.

    It is that of the front matter, else a heading that the document begins with, else the first of level 1.
    """
    named = front_matter.get("title")
    if isinstance(named, str) and named.strip():
        return " ".join(named.split())
    read = [block for block in structure.blocks if block.kind not in (HIDDEN, FRONT_MATTER)]
    titles = (block.text for place, block in enumerate(read) if block.kind == TITLE and (block.level == 1 or not place))
    return next(titles, "")


def read_records(path: str, data: bytes, settings: InputSettings) -> list[SourceRecord]:
    """Read one file: one record for a text or office file, one per row of a structured file.

    Rows that are chunks of documents make one record per document, with a note on defects of its
    rows. Whatever a file raises is the problem of that file alone.

    Args:
        path: path relative to the input folder; it determines the ids and, by its extension, the format.
        data: the whole file.

    Returns:
        Records in file order with unique ids; an unusable record has a `problem`. Without `input.filters` at least one;
        with them, the rows of a structured file that pass.

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
        text = recode(data, settings.encoding) if settings.encoding and _undeclared(data, format) is data else data
        rows = find_rows(format, text, settings)
        if rows is None:
            return _add_note([_read_whole_file(path, format, text, settings)], format, text, settings)
        records = read_rows(path, rows, settings)
        return records if settings.filters else _add_note(records, format, text, settings)
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
    return CORPUS_MANIFEST.from_rows(
        [{name: getattr(record, name) for name in columns} | _reasons(record) for record in records]
    )


def _reasons(record: SourceRecord) -> dict[str, str | None]:
    """Return problem and note in one line each: a library may give a reason with several, and a name may have them."""
    return {
        name: text and " ".join(text.splitlines())
        for name, text in (("problem", record.problem), ("note", record.note))
    }


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


def _add_note(records: list[SourceRecord], format: str, data: bytes, settings: InputSettings) -> list[SourceRecord]:
    """Add to the first record of a file a note on how its bytes had to be read, or on what the file hides."""
    if not records or records[0].problem:
        return records
    undeclared = recode(_undeclared(data, format), settings.encoding)
    notes = (records[0].note, describe_doubt(undeclared), describe_hidden(data, format))
    return [replace(records[0], note="; ".join(filter(None, notes)) or None), *records[1:]]


def _undeclared(data: bytes, format: str) -> bytes:
    """Return the bytes of a text whose encoding the file does not say; empty without such."""
    if format == "eml":
        return find_undeclared_body(data)
    is_said = find_html_encoding(data) if format == "html" else format in CONVERTED or format == "parquet"
    return b"" if is_said else data


def _read_whole_file(path: str, format: str, data: bytes, settings: InputSettings) -> SourceRecord:
    if format == "eml":
        title, text, media_type = read_mail(data, settings.encoding)
        if media_type == "text/html":
            text = convert_to_markdown(text.encode(), "html", settings)[1]
    else:
        title, text = convert_to_markdown(data, format, settings) if format in CONVERTED else ("", decode_text(data))
    if not text.strip():
        raise UnreadableInput(
            "empty: no text in it (a scanned page needs OCR first)" if format in CONVERTED else "empty"
        )
    stem = PurePosixPath(path).stem
    structure = read_structure(text)
    front_matter, labels = read_front_matter(text, structure), read_labels(structure)
    if not title and format != "txt":
        title = read_title(structure, front_matter)
    day = find_date(front_matter, labels, title, stem, settings.dates)
    values = {key_of(label): value for label, value in (front_matter | labels).items() if key_of(label)}
    record = make_record(path, "", len(data), title or stem, text, day.isoformat() if day else None, values)
    unread = find_unread_date(front_matter | labels) if settings.dates else ""
    return replace(record, note=f"no day in {unread!r}; write it as 2025-03-04" if unread else None)
