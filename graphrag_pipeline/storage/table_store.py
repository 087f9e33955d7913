"""The table store: immutable Parquet partitions and the heads that name the current ones.

`tables/<table>/<partition>/<content hash>.parquet` never changes once written. Only `heads/<table>/<partition>.json` is
ever replaced: it names the files of the partition, their data version, the code that made them and the versions of the
inputs read. `status`, `index` and the sensor read heads alone. Keep out: Dagster, and the computation of a stage.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from graphrag_pipeline.arrow_columns import join_rows, narrow_type
from graphrag_pipeline.errors import DamagedFileError, PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.files import read_sealed, seal
from graphrag_pipeline.identity import WHOLE, stable_hash
from graphrag_pipeline.storage.damage import find_changed_file
from graphrag_pipeline.storage.formats import ANY_KEY, FORMAT, check_names, check_shape, check_version, read_values
from graphrag_pipeline.tables import STAGE_TABLES, Table

_HEAD_SHAPE = {
    "table": str, "partition": str, "data_version": str, "code_version": str, "code": {ANY_KEY: object},
    "inputs": {ANY_KEY: str}, "files": [{"name": str, "n_rows": int, "n_bytes": int}], "based_on?": str,
}  # fmt: skip
_FIRST_TABLE = next(iter(STAGE_TABLES))
"""The table of the first stage, which has one head for each bucket."""
_ROW_GROUP = 65_536  # rows read or skipped at once


@dataclass(frozen=True)
class StoredFile:
    """One Parquet file of a partition; `name` is its content hash plus ".parquet"."""

    name: str
    n_rows: int
    n_bytes: int


@dataclass(frozen=True)
class Head:
    """The current version of one partition of a table.

    Attributes:
        files: the Parquet files, in order.
        data_version: hash of the files' contents.
        code_version: hash of `code`.
        code: all that the result depends on besides its inputs (algorithm, settings, prompts, models, schema), by name.
        inputs: data version of every partition that was read, by "table/partition".
        based_on: the published snapshot that the result continues; "" without one. It is not an input, since
            publishing the result would then make it stale.
    """

    table: str
    partition: str
    files: tuple[StoredFile, ...]
    data_version: str
    code_version: str
    code: dict[str, Any]
    inputs: dict[str, str]
    based_on: str = ""

    @property
    def n_rows(self) -> int:
        return sum(file.n_rows for file in self.files)

    def to_json(self) -> bytes:
        return seal(asdict(self))

    @classmethod
    def from_json(cls, data: bytes, place: object) -> Head:
        """Read a head.

        Args:
            place: path or URL, for messages.

        Raises:
            ValueError, KeyError, TypeError: it is damaged, such as a name of a file that is not of its version.
            NewerFormatError: a newer release wrote it.
            PipelineError: it names a file outside its folder.
        """
        return cls.from_values(read_sealed(data), place)

    @classmethod
    def from_values(cls, values: object, place: object) -> Head:
        """Read a head from values that were read from JSON (`from_json`)."""
        read = check_version(values, place)
        check_shape(read, _HEAD_SHAPE)
        stored = tuple(StoredFile(**file) for file in read.pop("files"))
        head = cls(**read, files=stored)
        if stored and data_version_of(stored) != head.data_version:
            raise ValueError("its files are not those of its data version")
        check_names((head.table, head.partition, *(file.name for file in stored)), place)
        return head


def code_version_of(code: Mapping[str, Any]) -> str:
    """Return the hash of `Head.code`."""
    return stable_hash(json.dumps(code, sort_keys=True, ensure_ascii=False))


def parquet_bytes(rows: pa.Table) -> pa.Buffer:
    """Return rows as Parquet; the bytes depend only on the rows and the pyarrow release."""
    sink = pa.BufferOutputStream()
    _write_parquet([rows], sink)
    return sink.getvalue()


def put_parquet(folder: Path, rows: pa.Table | Iterable[pa.Table]) -> tuple[str, int]:
    """Save rows as the bytes of `parquet_bytes`, named by their hash; return name and size of the file.

    Args:
        rows: a table, or slices of one (at least one) in the order of the file, of which few are in memory at a time.
    """
    slices = [rows] if isinstance(rows, pa.Table) else rows
    return files.write_new(folder, ".parquet", partial(_write_parquet, slices))


def _write_parquet(slices: Iterable[pa.Table], sink: pa.NativeFile | BinaryIO) -> None:
    groups = _by_row_groups(slices)
    first = next(groups).replace_schema_metadata(None)
    schema = pa.schema([field.with_type(narrow_type(field.type)) for field in first.schema])
    with pq.ParquetWriter(sink, schema, compression="zstd", write_page_index=True) as writer:
        for rows in itertools.chain([first], groups):
            if rows.schema.equals(schema):
                writer.write_table(rows, row_group_size=_ROW_GROUP)
                continue
            # Rows are copied, since a cast takes all that a slice is a part of.
            for start in range(0, max(rows.num_rows, 1), _ROW_GROUP):
                group = rows.take(pa.array(range(start, min(start + _ROW_GROUP, rows.num_rows)), pa.int64()))
                writer.write_table(group.cast(schema), row_group_size=_ROW_GROUP)


def _by_row_groups(slices: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of slices in tables of whole row groups, then one with the rest; at least one table."""
    # In one chunk, since a page of a file ends where a chunk ends.
    rest: pa.Table | None = None
    is_first = True
    for rows in slices:
        waiting = pa.concat_tables([rows] if rest is None else [rest, rows]).combine_chunks()
        n_whole = waiting.num_rows - waiting.num_rows % _ROW_GROUP
        if n_whole:
            yield waiting.slice(0, n_whole)
            is_first = False
        rest = waiting.slice(n_whole)
    if rest is not None and (rest.num_rows or is_first):
        yield rest


class TableStore:
    """Stage tables of one root.

    Args:
        root: the folder that holds `tables/` and `heads/`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    # ----------------------------------------------------------------------------------------------------------- layout

    def check_layout(self, n_buckets: int) -> None:
        """Record the number of buckets at first use and refuse another number later.

        Raises:
            PipelineError: the root was built with another number of buckets or a newer format.
        """
        if problem := self.find_layout_problem(n_buckets):
            raise PipelineError(problem)
        if self._read_layout() is None:
            files.replace(self.layout_path, seal({"format": FORMAT, "n_buckets": n_buckets}))

    def find_layout_problem(self, n_buckets: int) -> str:
        """Return why this number of buckets cannot be used, and the way out; "" if it can be used."""
        layout = self._read_layout() or {"n_buckets": self._count_buckets() or n_buckets}
        if layout["n_buckets"] != n_buckets:
            return (
                f"storage.n_buckets is {n_buckets}, but `{self.root}` was built with {layout['n_buckets']}; set it "
                f"back, or remove `{self.root / 'tables'}` and `{self.root / 'heads'}` and index again"
            )
        return ""

    def _read_layout(self) -> dict[str, Any] | None:
        """Return the content of the layout file; None if it is missing or damaged, so that it is written again."""
        try:
            layout = read_values(self.layout_path.read_bytes(), self.layout_path)
        except (FileNotFoundError, ValueError):
            return None
        return layout if "n_buckets" in layout else None

    def is_layout_damaged(self) -> bool:
        """Return whether the layout file exists and cannot be read."""
        return self.layout_path.exists() and self._read_layout() is None

    def _count_buckets(self) -> int:
        """Return the number of buckets of the heads, for a root whose layout file is damaged; 0 if none was built."""
        return len(list((self.root / "heads" / _FIRST_TABLE).glob("[!.]*.json"))) if self.layout_path.exists() else 0

    @property
    def layout_path(self) -> Path:
        """Path of the file that records the number of buckets."""
        return self.root / "tables" / "layout.json"

    # ------------------------------------------------------------------------------------------------------------ heads

    def _head_path(self, table: str, partition: str) -> Path:
        return self.root / "heads" / table / f"{partition}.json"

    def head(self, table: str, partition: str = WHOLE) -> Head | None:
        """Return the head of a partition; None if it was never materialized, or if it or a file is missing or cut.

        So a partition that a power cut damaged is rebuilt.

        Raises:
            NewerFormatError: a newer release wrote it.
        """
        try:
            head = self.read_stored_head(self._head_path(table, partition))
        except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
            return None
        return head if all(map(_is_whole, self.paths(head), head.files)) else None

    def read_stored_head(self, path: Path) -> Head:
        """Return the head in a file; its Parquet files are not looked at.

        Raises:
            OSError: the file cannot be read.
            ValueError, KeyError, TypeError, PipelineError: see `Head.from_json`; also if it is another partition's.
        """
        head = Head.from_json(path.read_bytes(), path)
        if (head.table, head.partition) != (path.parent.name, path.stem):
            raise ValueError(f"it is the head of {head.table}/{head.partition}")
        return head

    def head_paths(self) -> list[Path]:
        """Return the path of every head, sorted."""
        return sorted((self.root / "heads").glob("*/[!.]*.json"))

    def heads(self, table: str, partitions: Sequence[str]) -> dict[str, Head | None]:
        """Return the head of each partition, as `head` does."""
        return {partition: self.head(table, partition) for partition in partitions}

    def check_files(self, head: Head) -> None:
        """Raise if a file of a head changed; a file is read once by a process for this.

        Raises:
            DamagedFileError: the content of a file is not the one that its name promises.
        """
        for path in self.paths(head):
            if find_changed_file(path):
                raise DamagedFileError(
                    f"`{path}` is damaged: its content is not the one that its name promises; run `graphrag-pipeline "
                    "index`, which makes it again"
                )

    def paths(self, head: Head) -> list[Path]:
        """Return the paths of the files of a head, in order."""
        return [self.root / "tables" / head.table / head.partition / file.name for file in head.files]

    # ------------------------------------------------------------------------------------------------- reading, writing

    def write(
        self,
        table: Table,
        partition: str,
        parts: Sequence[pa.Table | Iterator[pa.Table]],
        code: Mapping[str, Any],
        inputs: Mapping[str, str],
        based_on: str = "",
    ) -> Head:
        """Save a partition as one immutable file per part, then point its head at them.

        Args:
            parts: rows of the table, or slices of them in file order, usually one part; tables stored by level have
                one part for each level.
        """
        stored = []
        folder = self.root / "tables" / table.name / partition
        for rows in parts:
            name, n_bytes = put_parquet(folder, table.sort(rows) if isinstance(rows, pa.Table) else rows)
            stored.append(StoredFile(name, pq.read_metadata(folder / name).num_rows, n_bytes))
        head = Head(
            table.name,
            partition,
            tuple(stored),
            data_version_of(stored),
            code_version_of(code),
            dict(code),
            dict(inputs),
            based_on,
        )
        self.write_head(head)
        # A stage ends here: without this, Arrow's allocator keeps its memory while the next stage needs memory.
        pa.default_memory_pool().release_unused()
        return head

    def write_head(self, head: Head) -> None:
        """Replace the head of a partition; an equal head is left alone."""
        data = head.to_json()
        path = self._head_path(head.table, head.partition)
        if not path.exists() or path.read_bytes() != data:
            files.replace(path, data)

    def read(self, table: str, partition: str = WHOLE) -> pa.Table:
        """Return all rows of a partition.

        Raises:
            PipelineError: the partition was never materialized.
        """
        return self.read_head(self.need(table, partition))

    def read_head(self, head: Head, without: Sequence[str] = ()) -> pa.Table:
        """Return all rows of the files of a head, as one chunk; columns over 2 GiB have a wide type.

        Args:
            without: columns that are not read.

        Raises:
            DamagedFileError: the content of a file is not the one that its name promises.
        """
        self.check_files(head)
        schema = pa.schema([field for field in STAGE_TABLES[head.table].schema if field.name not in without])
        parts = [_read_file(path, schema) for path in self.paths(head)]
        return join_rows(parts, schema)

    def read_version(self, table: str, partition: str, data_version: str) -> pa.Table | None:
        """Return all rows of an earlier version of a partition, in one file; None if that is missing or damaged."""
        for path in sorted((self.root / "tables" / table / partition).glob("*.parquet")):
            if data_version_of([StoredFile(path.name, 0, 0)]) == data_version and not find_changed_file(path):
                try:
                    return _read_file(path, STAGE_TABLES[table].schema)
                except (OSError, pa.ArrowException):
                    return None
        return None

    def dataset(self, heads: Sequence[Head]) -> ds.Dataset:
        """Return partitions of one table as one lazily scanned dataset, in the order of `heads` (at least one).

        Raises:
            DamagedFileError: see `read_head`.
        """
        for head in heads:
            self.check_files(head)
        paths = [str(path) for head in heads for path in self.paths(head)]
        # Without this, columns are buffered ahead, and a file of vectors is in memory twice.
        options = ds.ParquetFragmentScanOptions(pre_buffer=False)
        file_format = ds.ParquetFileFormat(default_fragment_scan_options=options)
        return ds.dataset(paths, schema=STAGE_TABLES[heads[0].table].schema, format=file_format)

    def need(self, table: str, partition: str = WHOLE) -> Head:
        """Return the head of a partition.

        Raises:
            PipelineError: it was never materialized; the message names it and the stage that makes it.
        """
        head = self.head(table, partition)
        if head is None:
            raise PipelineError(
                f"`{table}`, partition {partition}, is not materialized; materialize {STAGE_TABLES[table].owner} of "
                "that partition first, or run `graphrag-pipeline index`"
            )
        return head


def _read_file(path: Path, schema: pa.Schema) -> pa.Table:
    """Return the columns of a schema of all rows of a file; those that an older file lacks are null."""
    # Group by group: reading the whole file at once needs four times its memory (vectors: 729 MB for 199 MB).
    with pq.ParquetFile(path) as file:
        groups = [file.read_row_group(number, columns=schema.names) for number in range(file.num_row_groups)]
        rows = pa.concat_tables(groups or [file.schema_arrow.empty_table()])
    return rows if rows.schema.equals(schema) else pq.read_table(path, schema=schema)


def _is_whole(path: Path, file: StoredFile) -> bool:
    return path.is_file() and path.stat().st_size == file.n_bytes


def data_version_of(stored: Sequence[StoredFile]) -> str:
    """Return the hash of the files' content hashes: equal content has an equal version."""
    return stable_hash(*(file.name for file in stored))
