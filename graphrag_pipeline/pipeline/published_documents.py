"""The documents of a published snapshot as the input of another root, which is a view of it.

A view reads the stage tables that the snapshot of its root was joined from. So it has the texts, versions, ids and
offsets that readers of the root have, and nothing that is not published yet. Of documents that do not pass, nothing is
left: rows without an id are numbered again, and columns of a table that have a value in no passing row are left out.

A row that the root refused, since another row has its id, is in no snapshot. If the other row does not pass, the
refused one would be missing only because of it; then no view is made. Keep out: which snapshot is read
(`access/views.py`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import bucket_of
from graphrag_pipeline.inputs.rows import find_repeated_id
from graphrag_pipeline.inputs.source_records import (
    SourceRecord,
    canonical_json,
    document_id_of,
    format_of,
    is_row_number,
    parse_filters,
    passes_all,
    problem_record,
    rename_row,
    row_order,
    with_metadata,
)
from graphrag_pipeline.storage.manifests import Manifest
from graphrag_pipeline.storage.table_store import Head, StoredFile, TableStore

_LARGE = ("text", "chunks")
"""Columns that are read only for the documents of the wanted buckets."""
_TABLES = ("csv", "parquet")
"""Formats whose rows all have the columns of their file."""
_EMPTY: tuple[Any, ...] = (None, "", [], {})


@dataclass(frozen=True)
class _Planned:
    """A document that passes, without its large columns.

    Attributes:
        record: as the snapshot has it.
        bucket: where its row is.
        name: of the record in the view.
        metadata: in the view.
    """

    record: SourceRecord
    bucket: str
    name: str
    metadata: str

    @property
    def document_id(self) -> str:
        is_kept = self.name == self.record.record
        return self.record.document_id if is_kept else document_id_of(self.record.path, self.name)

    def finish(self, text: str, chunks: list[dict[str, Any]] | None) -> SourceRecord:
        own = SourceRecord(**{**vars(self.record), "text": text, "chunks": chunks})
        own = own if self.metadata == own.metadata else with_metadata(own, self.metadata)
        return own if self.name == own.record else rename_row(own, self.name)


class PublishedDocuments:
    """The documents of a snapshot that pass filters, as source records.

    Args:
        tables: of the root that published it.
        manifest: of the snapshot.
    """

    def __init__(self, tables: TableStore, manifest: Manifest, filters: Sequence[str]) -> None:
        self._tables = tables
        self._manifest = manifest
        self._filters = parse_filters(filters)

    def records(self, n_buckets: int, buckets: Collection[str] | None = None) -> Iterator[SourceRecord]:
        """Yield the documents, or those of some buckets.

        Raises:
            DamagedFileError: a file of the snapshot is gone or damaged.
            PipelineError: a row that does not pass hides another one.
        """
        wanted = None if buckets is None else frozenset(buckets)
        chosen: dict[str, list[_Planned]] = defaultdict(list)
        for one in self._planned:
            if wanted is None or bucket_of(one.document_id, n_buckets) in wanted:
                chosen[one.bucket].append(one)
        for bucket, planned in chosen.items():
            large = {row["id"]: row for row in self._read("documents", bucket).select(["id", *_LARGE]).to_pylist()}
            for one in planned:
                row = large[one.record.document_id]
                yield one.finish(row["text"], row["chunks"])

    @cached_property
    def _planned(self) -> list[_Planned]:
        files: dict[str, list[tuple[str, SourceRecord]]] = defaultdict(list)
        for bucket in self._buckets:
            for record in self._light_records(bucket):
                files[record.path].append((bucket, record))
        return [one for placed in files.values() for one in self._plan_file(placed)]

    def _plan_file(self, placed: Sequence[tuple[str, SourceRecord]]) -> Iterator[_Planned]:
        """Yield the documents of one file that pass, as if it had no others."""
        passing = [(bucket, record) for bucket, record in placed if passes_all(record, self._filters)]
        kept = [(bucket, record) for bucket, record in passing if not record.problem]
        if len(passing) == len(placed):
            yield from (_Planned(record, bucket, record.record, record.metadata) for bucket, record in kept)
            return
        self._refuse_hidden([record for _, record in placed], [record for _, record in kept])
        names = _number_again([record.record for _, record in kept])
        trimmed = _trim_columns([record for _, record in kept])
        for (bucket, record), name, metadata in zip(kept, names, trimmed, strict=True):
            yield _Planned(record, bucket, name, metadata)

    def _refuse_hidden(self, records: Iterable[SourceRecord], kept: Iterable[SourceRecord]) -> None:
        """Raise if a row was refused for the id of a row that does not pass, and may pass itself."""
        seen = {record.record for record in kept}
        by_path = [condition for condition in self._filters if condition.field.casefold() == "path"]
        for record in records:
            repeated = find_repeated_id(record)
            if repeated is not None and repeated not in seen and passes_all(record, by_path):
                raise PipelineError(
                    f"`{record.path}` has several rows with the id {repeated!r}. The index has the first one, which "
                    "does not pass the filters, so it is not known whether another one does. Give each row an id of "
                    "its own, run `graphrag-pipeline index`, then `graphrag-pipeline access build`"
                )

    def _light_records(self, bucket: str) -> Iterator[SourceRecord]:
        """Yield the records of a bucket without texts and chunks, problems included."""
        documents = {row["id"]: row for row in self._read("documents", bucket).drop_columns(list(_LARGE)).to_pylist()}
        for row in self._read("corpus_manifest", bucket).to_pylist():
            if row["document_id"] not in documents:
                yield problem_record(row["path"], row["problem"] or "not in the index", row["record"], row["n_bytes"])
                continue
            own = {name: value for name, value in documents[row["document_id"]].items() if name != "id"}
            named = {"document_id": row["document_id"], "format": format_of(row["path"]), "n_bytes": row["n_bytes"]}
            yield SourceRecord(**named, **own, text="", problem=None)

    @property
    def _buckets(self) -> list[str]:
        return [key.split("/")[1] for key in sorted(self._manifest.heads) if key.startswith("documents/")]

    def _read(self, table: str, bucket: str) -> pa.Table:
        return read_published(self._tables, self._manifest, table, bucket)


def read_published(tables: TableStore, manifest: Manifest, table: str, partition: str) -> pa.Table:
    """Return the rows of a stage partition that a snapshot was joined from; no rows if it was joined without it.

    Raises:
        DamagedFileError: a file of it is gone or damaged.
    """
    found = manifest.heads.get(f"{table}/{partition}", {}).get("files", ())
    stored = tuple(StoredFile(file["name"], file.get("n_rows", 0), file.get("n_bytes", 0)) for file in found)
    return tables.read_head(Head(table, partition, stored, "", "", {}, {}))


def _number_again(names: Sequence[str]) -> list[str]:
    """Return names of records where those of rows without an id count these rows only, in the order of the file."""
    ordered = sorted((name for name in names if is_row_number(name)), key=row_order)
    numbers = {name: f"#{number}" for number, name in enumerate(ordered, start=1)}
    return [numbers.get(name, name) for name in names]


def _trim_columns(records: Sequence[SourceRecord]) -> list[str]:
    """Return the metadata of the records of one file, for a table without the columns that none of them uses."""
    if not records or records[0].format not in _TABLES:
        return [record.metadata for record in records]
    read = [json.loads(record.metadata) for record in records]
    used = {place for values in read for place in _used_places(values)}
    return [canonical_json(_only(values, used)) for values in read]


def _used_places(values: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the keys that lead to a value, and to each object around one."""
    for key, value in values.items():
        inner = [*_used_places(value, (*above, key))] if isinstance(value, dict) else []
        yield from inner
        if inner or (not isinstance(value, dict) and value not in _EMPTY):
            yield (*above, key)


def _only(values: Mapping[str, Any], used: Collection[tuple[str, ...]], above: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        key: _only(value, used, (*above, key)) if isinstance(value, dict) else value
        for key, value in values.items()
        if (*above, key) in used
    }
