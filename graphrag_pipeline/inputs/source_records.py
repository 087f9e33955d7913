"""A source record: one future document, or the reason why it cannot become one; its id, its hash, and its cache.

Records of parsed and converted files are Parquet: cached by content and settings, and sent between processes. Values of
a structured record are found by dotted path, and become text, numbers, dates or canonical JSON. Keep out: reading
records (`documents.py`), and the choice of files (`files.py`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filters import COLUMNS, Filter, flatten_metadata, parse_filter, passes
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.inputs.formats import CONVERTED, FORMATS, STRUCTURED, normalize_text
from graphrag_pipeline.settings.input import InputSettings
from graphrag_pipeline.tables import CHUNKS


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


_ROW_NUMBER = re.compile(r"#\d+#*")


def parse_filters(texts: Sequence[str]) -> tuple[Filter, ...]:
    """Parse filters; their order does not matter."""
    return tuple(parse_filter(text) for text in texts)


def passes_all(record: SourceRecord, filters: Sequence[Filter]) -> bool:
    """Return whether a record passes all filters; without filters, every record does."""
    if not filters:
        return True
    columns = {name: getattr(record, name) for name in COLUMNS if name != "id"} | {"id": record.document_id}
    metadata = dict(flatten_metadata(json.loads(record.metadata)))
    return all(passes(condition, columns, metadata) for condition in filters)


def keep_passing(records: Sequence[SourceRecord], filters: Sequence[Filter]) -> list[SourceRecord]:
    """Return the records of one file of chunks that pass; of the others nothing is left, also in numbers and notes."""
    kept = [record for record in records if passes_all(record, filters)]
    if len(kept) == len(records):
        return kept
    # A problem or note of one row may name another row.
    return _number_again([dataclasses.replace(record, note=None) for record in kept if not record.problem])


def is_row_number(name: str) -> bool:
    """Whether the name of a record is the number of its row, since the row has no id."""
    return _ROW_NUMBER.fullmatch(name) is not None


def row_order(name: str) -> tuple[int, str]:
    """Return a key that orders names which are numbers of rows as their file does."""
    return int(name.strip("#")), name


def _number_again(records: Sequence[SourceRecord]) -> list[SourceRecord]:
    """Number the records without an id of their own as if the file had these records only."""
    own = {record.record for record in records if not is_row_number(record.record)}
    return [
        rename_row(record, f"#{number}") if record.record and record.record not in own else record
        for number, record in enumerate(records, start=1)
    ]


_YEAR_OR_MONTH = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2]))?")
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}(?:\.0+)?")

KeyPath = tuple[str, ...]


def exceeds_depth(value: Any, max_depth: int) -> bool:
    """Whether objects and lists are nested in each other more than `max_depth` deep; the value itself counts as one."""
    level = [value]
    for _ in range(max_depth):
        nested = (inner.values() if isinstance(inner, dict) else inner for inner in level)
        level = [child for inner in nested for child in inner if isinstance(child, dict | list | tuple)]
        if not level:
            return False
    return True


def find_column(values: dict[str, Any], column: str) -> KeyPath | None:
    """Return the keys that lead to a column: its literal name, else its dotted path into nested objects."""
    if column in values:
        return (column,)
    keys = tuple(column.split("."))
    inner: Any = values
    for key in keys:
        if not isinstance(inner, dict) or key not in inner:
            return None
        inner = inner[key]
    return keys


def value_of(values: dict[str, Any], column: str) -> Any:
    inner: Any = values
    for key in find_column(values, column) or ():
        inner = inner[key]
    return None if inner is values else inner


def without_columns(values: dict[str, Any], key_paths: set[KeyPath]) -> dict[str, Any]:
    """Return a copy without the values at these paths and without objects that become empty."""
    rest: dict[str, Any] = {}
    for key, value in values.items():
        if (key,) in key_paths:
            continue
        inner = {key_path[1:] for key_path in key_paths if key_path[0] == key}
        if inner:
            value = without_columns(value, inner)
            if not value:
                continue
        rest[key] = value
    return rest


def column_names(values: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the dotted paths of all values."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from column_names(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def as_text(value: Any) -> str:
    """Return a value as text: text unchanged, "" for null, JSON for nested values."""
    if isinstance(value, str):
        return value
    plain = _plain(value)
    return "" if plain is None else plain if isinstance(plain, str) else canonical_json(plain)


def as_integer(value: Any) -> int | None:
    """Return a value as a whole number (7, 7.0, "7", " -7 "); None for other values."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    text = as_text(value).strip()
    return int(text.partition(".")[0]) if _INTEGER.fullmatch(text) else None


def as_iso_date(value: Any) -> str | None:
    """Return a value that is an ISO 8601 date or time, or a year or month; None for others, which stay metadata."""
    text = as_text(value).strip()
    if _YEAR_OR_MONTH.fullmatch(text):
        return text
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return None
    return text


def canonical_json(value: Any) -> str:
    """Return JSON that is equal for equal values: keys sorted, without spaces."""
    return json.dumps(_plain(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold: other types as text, NaN and infinities as null."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


READER_VERSION = "7"
"""Raise it when a reader returns another result for the same bytes; cached records are then not used."""

FILTERS_VERSION = "2"
"""Raise it when another row passes `input.filters`; cached records of files with rows are then not used."""

_HASH_BYTES = hashlib.sha256().digest_size
"""Length of the hash at the beginning of a cached file. A file with another hash counts as not there."""
RECORDS_FOLDER = "documents"
"""Folder of the records in the cache."""

_COLUMN_TYPES = {"n_bytes": pa.int64(), "chunks": CHUNKS, "is_unknown": pa.bool_()}  # all others are text
_RECORD_SCHEMA = pa.schema(
    [(field.name, _COLUMN_TYPES.get(field.name, pa.string())) for field in dataclasses.fields(SourceRecord)]
)


@dataclasses.dataclass(frozen=True)
class ReadFile:
    """The records of a file and the sha256 of what was read; "" if the next attempt may give other records."""

    records: list[SourceRecord]
    digest: str


def is_cached(format: str) -> bool:
    """Whether the records of a format are cached: of all that take longer to read than plain text."""
    return format in STRUCTURED or format in CONVERTED


def read_cached(
    cache_folder: Path | None, path: str, digest: str, settings: InputSettings, read: Callable[[], ReadFile]
) -> list[SourceRecord]:
    """Return the cached records of a file, else those that `read` returns, and cache them.

    Args:
        cache_folder: of the root; None caches nothing.
        digest: sha256 of the file.
    """
    records = _load(_entry(cache_folder, path, digest, settings)) if cache_folder else None
    if records is not None:
        return records
    found = read()
    if cache_folder and found.digest:
        # Without permission to write the cache, `status` still works on the root.
        with contextlib.suppress(PipelineError):
            data = dump_records(found.records)
            entry = _entry(cache_folder, path, found.digest, settings)
            files.replace(entry, hashlib.sha256(data).digest() + data)
    return found.records


def _entry(cache_folder: Path, path: str, digest: str, settings: InputSettings) -> Path:
    return cache_folder / RECORDS_FOLDER / entry_name(path, digest, settings)


def entry_name(path: str, digest: str, settings: InputSettings) -> str:
    """Return the name of a cached file of records."""
    has_rows = format_of(path) in STRUCTURED and bool(settings.filters)
    versions = (READER_VERSION, FILTERS_VERSION) if has_rows else (READER_VERSION,)
    columns = _options_of_readers(settings, has_rows)
    converter = _version_of("markitdown") if format_of(path) in CONVERTED else ""  # after an upgrade, read again
    return f"{stable_hash(*versions, path, digest, columns, converter, str(_RECORD_SCHEMA))}.records"


def version_of_readers(settings: InputSettings) -> str:
    """Return a hash of everything but a file that decides what is read from it."""
    packages = _version_of("graphrag-pipeline"), _version_of("markitdown")
    return stable_hash(READER_VERSION, FILTERS_VERSION, *packages, _options_of_readers(settings, has_filters=True))


def _options_of_readers(settings: InputSettings, has_filters: bool) -> str:
    unused = {"folder", "exclude", "published_by", "snapshot", *(() if has_filters else ("filters",))}
    return settings.model_dump_json(exclude=unused)


def _version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def without_text(record: SourceRecord) -> SourceRecord:
    """Drop the text: the corpus manifest does not need it, and a whole corpus would not fit in memory."""
    return replace(record, text="", metadata="{}")


def dump_records(records: list[SourceRecord]) -> memoryview:
    """Return records as the bytes of a Parquet file."""
    table = pa.Table.from_pylist([vars(record) for record in records], schema=_RECORD_SCHEMA)
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd")
    return memoryview(buffer.getvalue())


def load_records(data: bytes | memoryview) -> list[SourceRecord]:
    """Return the records of `dump_records`."""
    return [SourceRecord(**row) for row in pq.read_table(pa.BufferReader(data)).to_pylist()]


def _load(entry: Path) -> list[SourceRecord] | None:
    """Return cached records; None without any, or if the file does not begin with the hash of the rest."""
    try:
        data = memoryview(entry.read_bytes())
    except OSError:
        return None
    digest, records = data[:_HASH_BYTES], data[_HASH_BYTES:]
    return load_records(records) if hashlib.sha256(records).digest() == digest else None
