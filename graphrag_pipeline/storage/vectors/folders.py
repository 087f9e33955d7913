"""Vector tables of a snapshot: immutable LanceDB folders named after their content.

A table is the folder `<parent>/<name>/<content hash>/<name>.lance`, with the columns `id`, `text`, `vector` and
`attributes` (JSON). Its rows lie beside it in the files of `rows.py`. A changed table is a
hard-linked copy of the last folder plus an upsert of the difference. Nothing writes into a folder that has its final
name, and LanceDB's own versions and tags are not used. Rows are hashed and written in batches, since vectors are the
largest data of an index. Keep out: searching (`lance.py`), and the choice of texts to embed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.arrow_columns import one_chunk
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.listed_folders import LIST_FILE, find_changed_files, write_file_list
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.storage.vectors.rows import (
    KEYS_FILE,
    TABLE_ROWS,
    RowKeys,
    hash_rows,
    holds_rows,
    read_apart,
    read_row_keys,
    reporting_damage,
    write_row_keys,
    write_segment,
)

ANN_MIN_ROWS = 20_000
"""Number of rows from which a table gets an index; below it, exact search is as fast."""
SEARCHED = ("default-entity-description", "default-text_unit-text", "default-community-full_content")
"""Tables that get an index; no search looks for relationships by vector, and an index costs processor time."""
MAX_UNINDEXED_SHARE = 0.1
"""Above this share of rows changed since the last whole build, the folder is built whole again."""
_EF_CONSTRUCTION = 150
"""Neighbours examined when a row enters the index. Measured on 40,146 entities: 0.36 ms of processor time a row, and
searches find 99.3 % of the true 20 nearest rows. LanceDB's default of 300 costs 0.56 ms and finds 99.4 %. A value of
100 with 16 links costs 0.23 ms and finds 98.6 %."""
_BATCH_ROWS = 8_192


@dataclass(frozen=True)
class VectorFolder:
    """The identity and place of a vector table.

    Attributes:
        name: name of the LanceDB table, such as `default-entity-description`.
        content: hash of ids, texts, vectors and attributes; the folder's name.
        n_unindexed: number of rows changed since the folder was last built whole.
    """

    name: str
    content: str
    n_rows: int
    dimensions: int
    has_full_text: bool
    n_unindexed: int

    def path(self, parent: Path) -> Path:
        """Return the path of the folder; `parent` is the folder of all vector tables of a root."""
        return parent / self.name / self.content


Strings: TypeAlias = "Sequence[str] | pa.Array | pa.ChunkedArray"


class VectorMatrix(Protocol):
    """An array of vectors, or an object indexed like one: row numbers give float32 (len(rows), dimensions)."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, rows: Any, /) -> Any: ...


@dataclass(frozen=True)
class VectorRows:
    """Rows of a vector table in the order of their ids, read in batches from columns in any order.

    Attributes:
        ids, texts, attributes: strings, one per row.
        order: row numbers in the order of ids.
        vectors: shape (n, dimensions).
    """

    ids: pa.Array
    texts: pa.Array
    attributes: pa.Array
    order: np.ndarray
    vectors: VectorMatrix

    @property
    def n_rows(self) -> int:
        return len(self.ids)

    @property
    def dimensions(self) -> int:
        return self.vectors.shape[1]

    @property
    def schema(self) -> pa.Schema:
        strings = [(name, pa.string()) for name in ("id", "text", "attributes")]
        return pa.schema([*strings[:2], ("vector", pa.list_(pa.float32(), self.dimensions)), strings[2]])

    def batches(self, chosen: np.ndarray | None = None) -> Iterator[pa.RecordBatch]:
        """Yield batches of all rows, or of those at positions `chosen`, in order."""
        positions = np.arange(self.n_rows) if chosen is None else chosen
        for start in range(0, len(positions), _BATCH_ROWS):
            here = self.order[positions[start : start + _BATCH_ROWS]]
            taken = pa.array(here)
            flat = np.ascontiguousarray(self.vectors[here], dtype=np.float32).ravel()
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(flat), self.dimensions)
            columns = [self.ids.take(taken), self.texts.take(taken), vectors, self.attributes.take(taken)]
            yield pa.record_batch(columns, schema=self.schema)

    def content_hash(self) -> str:
        """Return the hash of all rows, 32 hex digits."""
        return self.hash_content()[0]

    def hash_content(self) -> tuple[str, RowKeys]:
        """Return the hash of all rows and the key of each row, in one pass."""
        digest = hashlib.sha256(str(self.schema).encode())
        keys = [np.zeros((0, 2), dtype=np.uint64)]
        for batch in self.batches():
            digest.update(batch.serialize())
            keys.append(hash_rows(batch))
        return digest.hexdigest()[:32], RowKeys(self.ids.take(pa.array(self.order)), np.concatenate(keys))


def vector_rows(ids: Strings, texts: Strings, vectors: VectorMatrix, attributes: Strings) -> VectorRows:
    """Return the rows of a vector table; `vectors` has one row per id."""
    column = _strings(ids)
    order = pc.sort_indices(column).to_numpy().astype(np.int64)
    return VectorRows(column, _strings(texts), _strings(attributes), order, vectors)


def _strings(values: Strings) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        return one_chunk(values)
    return pa.array(values, pa.string())


def build_vector_folder(
    parent: Path, name: str, rows: VectorRows, has_full_text: bool, previous: VectorFolder | None = None
) -> VectorFolder:
    """Build the folder that holds exactly `rows`, from the previous one if that is cheaper.

    Args:
        parent: folder of all vector tables of a root.
        rows: made by `vector_rows`.
        has_full_text: whether `text` gets a full-text index.
        previous: the folder of the last candidate, if it has this table.

    Raises:
        PipelineError: the disk is full or the folder cannot be written.
    """
    dimensions = rows.dimensions
    content_hash, keys = rows.hash_content()
    content = stable_hash(name, str(has_full_text), content_hash)
    n_changed = 0
    final = parent / name / content
    if not find_changed_files(final):
        known = previous.n_unindexed if previous and previous.content == content else 0
        return VectorFolder(name, content, rows.n_rows, dimensions, has_full_text, known)
    final.parent.mkdir(parents=True, exist_ok=True)
    working = Path(tempfile.mkdtemp(prefix=files.TEMPORARY_PREFIX, dir=final.parent))
    try:
        difference = _difference(parent, keys, previous) if previous and previous.dimensions == dimensions else None
        if difference is not None and previous is not None:
            n_changed = previous.n_unindexed + difference.n_changed
        if difference is None or previous is None or n_changed > MAX_UNINDEXED_SHARE * max(rows.n_rows, 1):
            n_changed = 0
            _build_whole(working, name, rows, has_full_text)
        else:
            _copy_and_upsert(previous.path(parent), working, name, rows, difference)
        write_row_keys(working, keys)
        write_file_list(working)
        working.chmod(0o755)
        shutil.rmtree(final, ignore_errors=True)  # a folder of this name is damaged: a whole one was returned above
        os.replace(working, final)
    except (OSError, RuntimeError) as error:  # LanceDB raises RuntimeError if the disk is full
        raise files.write_error(final, error) from error
    finally:
        shutil.rmtree(working, ignore_errors=True)
    return VectorFolder(name, content, rows.n_rows, dimensions, has_full_text, n_changed)


def read_table(folder: Path, name: str) -> VectorRows:
    """Return all rows of a LanceDB table; those of a folder without hashes may be wrong.

    Raises:
        NoSnapshotError: a file of the table is missing or damaged.
    """
    with reporting_damage(folder):
        return read_rows(read_apart(TABLE_ROWS, folder, name).combine_chunks())


def read_rows(rows: pa.Table) -> VectorRows:
    """Return the rows of a LanceDB table as those that it was made from."""
    vectors = rows["vector"].combine_chunks()
    matrix = np.asarray(vectors.flatten()).reshape(rows.num_rows, vectors.type.list_size)
    return vector_rows(rows["id"], rows["text"], matrix, rows["attributes"])


@dataclass(frozen=True)
class _Difference:
    """The difference to the last folder: positions of new and changed rows, ids of deleted rows."""

    changed: np.ndarray
    deleted: list[str]

    @property
    def n_changed(self) -> int:
        return len(self.changed) + len(self.deleted)


def _difference(parent: Path, keys: RowKeys, previous: VectorFolder) -> _Difference | None:
    folder = previous.path(parent)
    if find_changed_files(folder):
        return None
    return _Difference(*keys.find_changed(read_row_keys(folder)))


def _build_whole(folder: Path, name: str, rows: VectorRows, has_full_text: bool) -> None:
    reader = pa.RecordBatchReader.from_batches(rows.schema, rows.batches())
    table = connect(folder).create_table(name, data=reader)
    if has_full_text and rows.n_rows:
        from lancedb.index import FTS

        # ICU finds words in scripts without spaces; stemming and folding serve Latin scripts.
        table.create_index("text", config=FTS(base_tokenizer="icu", remove_stop_words=False))
    if rows.n_rows >= ANN_MIN_ROWS and name in SEARCHED:
        from lancedb.index import BTree, HnswSq

        table.create_index("id", config=BTree())  # without it, reading the vectors of a few ids scans all rows
        config = HnswSq(distance_type="cosine", num_partitions=1, ef_construction=_EF_CONSTRUCTION)
        table.create_index("vector", config=config)
    if rows.n_rows and name in SEARCHED:
        write_segment(folder, table)


def _copy_and_upsert(source: Path, target: Path, name: str, rows: VectorRows, difference: _Difference) -> None:
    for folder, _, names in os.walk(source):
        here = target / Path(folder).relative_to(source)
        here.mkdir(exist_ok=True)
        for file in names:
            if file in (LIST_FILE, KEYS_FILE) and Path(folder) == source:
                continue
            if Path(folder).name == "_versions":
                shutil.copy2(Path(folder) / file, here / file)
                continue
            files.link_or_copy(Path(folder) / file, here / file)
    table = connect(target).open_table(name)
    if difference.deleted:
        for start in range(0, len(difference.deleted), 1000):
            table.delete(f"id IN ({quote_ids(difference.deleted[start : start + 1000])})")
    if len(difference.changed):
        merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(pa.Table.from_batches(rows.batches(difference.changed), rows.schema))
        if holds_rows(source):
            write_segment(target, table)


def connect(folder: Path) -> Any:
    """Return a LanceDB connection to a folder."""
    import lancedb

    return lancedb.connect(str(folder))


def quote_ids(ids: Collection[str]) -> str:
    """Return ids as SQL string literals; quotes are doubled, so O'Brien and x') OR ('1'='1 stay data."""
    return ", ".join("'" + i.replace("'", "''") + "'" for i in ids)


def holds_deleted(parent: Path, folder: VectorFolder) -> bool:
    """Return whether the files of a folder hold deleted rows, which a build by difference only marks."""
    return any((folder.path(parent) / f"{folder.name}.lance" / "_deletions").glob("*"))


def rewrite_whole(parent: Path, folder: VectorFolder) -> None:
    """Build a folder whole and replace the old one, which no process may have open.

    After a kill between the two moves the folder is missing, and the next `index` rebuilds it.

    Raises:
        PipelineError: the disk is full, the folder is damaged, or its content does not match its name.
    """
    content = read_table(folder.path(parent), folder.name)
    if not replace_whole(parent, folder, content):
        raise PipelineError(f"`{folder.path(parent)}` is damaged; run `graphrag-pipeline index`, then this again")


def replace_whole(parent: Path, folder: VectorFolder, rows: VectorRows) -> bool:
    """Build a folder whole from these rows and replace the old one; return False if its name is not that of the rows.

    Raises:
        PipelineError: the disk is full or the folder cannot be written.
    """
    place = folder.path(parent)
    if stable_hash(folder.name, str(folder.has_full_text), rows.content_hash()) != folder.content:
        return False
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=files.TEMPORARY_PREFIX, dir=parent) as working:
            rebuilt = build_vector_folder(Path(working), folder.name, rows, folder.has_full_text)
            if place.exists():
                os.replace(place, Path(working) / "old")
            os.replace(rebuilt.path(Path(working)), place)
    except OSError as error:
        raise files.write_error(place, error) from error
    return True
