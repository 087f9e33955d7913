"""Records of parsed and converted files as Parquet: cached by content and settings, and sent between processes.

Keep out: reading input files (`documents.py`), and the choice of files (`files.py`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.inputs.formats import CONVERTED, STRUCTURED
from graphrag_pipeline.inputs.source_records import SourceRecord, format_of
from graphrag_pipeline.settings.input import InputSettings
from graphrag_pipeline.tables import CHUNKS

READER_VERSION = "5"
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
    has_rows = format_of(path) in STRUCTURED and settings.filters
    unused = ("folder", "exclude", "published_by", "snapshot", *(() if has_rows else ("filters",)))
    columns = settings.model_dump_json(exclude=set(unused))
    try:  # after the converter is installed or upgraded, files are read again
        converter = importlib.metadata.version("markitdown") if format_of(path) in CONVERTED else ""
    except importlib.metadata.PackageNotFoundError:
        converter = "missing"
    versions = (READER_VERSION, FILTERS_VERSION) if has_rows else (READER_VERSION,)
    return f"{stable_hash(*versions, path, digest, columns, converter, str(_RECORD_SCHEMA))}.records"


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
