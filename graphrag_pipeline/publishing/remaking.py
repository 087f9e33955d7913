"""Damaged parts of a snapshot, made again from its other parts, and accepted only under their old name.

A Parquet file comes from its mapped copy, and the copy from the Parquet file. Arrays come from the contract tables. A
folder of vectors comes from the tables and from vectors of its own rows, of the rows beside its LanceDB table, or of
other snapshots; the keys of its rows show which vectors are right. So an imported index, which no stage can make, is
often whole again. Keep out: which parts are damaged (`storage/damage.py`), and stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from graphrag_pipeline.arrow_columns import positions
from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.indexing.sentence_embeddings import embed_sentences, stack_sentences
from graphrag_pipeline.models.ports import load_static_embedder
from graphrag_pipeline.publishing.arrays import build_arrays, build_earlier_arrays
from graphrag_pipeline.publishing.candidates import join_vector_rows
from graphrag_pipeline.storage.damage import ARRAYS, MAPPED_TABLE, TABLE, StoredPart, find_changed_file, has_own_hash
from graphrag_pipeline.storage.manifests import hash_path
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.storage.snapshots import Snapshot, map_table
from graphrag_pipeline.storage.table_store import put_parquet
from graphrag_pipeline.storage.vectors.folders import VectorFolder, VectorRows
from graphrag_pipeline.storage.vectors.purge import replace_whole
from graphrag_pipeline.storage.vectors.row_keys import RowKeys, keys_of
from graphrag_pipeline.storage.vectors.rows_apart import KEY_ROWS, SEGMENT_ROWS, TABLE_ROWS, read_apart
from graphrag_pipeline.tables import VECTOR_TABLES

T = TypeVar("T")
_UNREADABLE = (OSError, EOFError, RuntimeError, ValueError, KeyError, IndexError, pa.ArrowException)
"""Errors of reading damaged files; each reader of a format has its own."""


def remake(store: SnapshotStore, snapshot: Snapshot, part: StoredPart, others: Sequence[Snapshot] = ()) -> bool:
    """Make a damaged part of a snapshot again; return whether it has the content that its name promises now.

    Args:
        others: snapshots of the root that may have vectors of it.

    Raises:
        PipelineError: the disk is full or the folder cannot be written.
    """
    try:
        if part.kind == TABLE:
            _remake_table(part.path)
        elif part.kind == MAPPED_TABLE:
            _remake_copy(store, part.path)
        elif part.kind == ARRAYS:
            _remake_arrays(store, snapshot, part.path)
        else:
            _remake_vectors(snapshot, part.path, others)
    except (NoSnapshotError, *_UNREADABLE):
        return False  # a part that it is made from is damaged, too
    return not part.changed(is_fresh=True)


def _remake_table(path: Path) -> None:
    mapped = path.with_suffix(".arrow")
    if hash_path(mapped).exists() and not has_own_hash(mapped):
        return
    rows = map_table(mapped)
    rows.validate(full=True)  # a copy without a hash may be damaged; the name of the result tells
    name, _ = put_parquet(path.parent, rows)
    if name != path.name:  # another release of pyarrow writes other bytes
        (path.parent / name).unlink()


def _remake_copy(store: SnapshotStore, path: Path) -> None:
    table = path.with_suffix(".parquet")
    if not find_changed_file(table):
        store.map_table(path.parent.name, {"file": table.name})


def _remake_arrays(store: SnapshotStore, snapshot: Snapshot, path: Path) -> None:
    names = list(snapshot.manifest.tables)
    if path.parent.name == "sentences":
        text_units = snapshot.checked_table("text_units")
        store.write_sentences(stack_sentences(text_units, embed_sentences(text_units, load_static_embedder())))
        return
    tables = {name: snapshot.checked_table(name) for name in names}
    if store.write_adjacency(build_arrays(tables)) == path.name:
        return
    for arrays in build_earlier_arrays(tables):
        if store.write_adjacency(arrays) == path.name:
            return


def _remake_vectors(snapshot: Snapshot, path: Path, others: Sequence[Snapshot]) -> None:
    parent, name = snapshot.folder / "vectors", path.parent.name
    folder = snapshot.manifest.vectors[name]
    tables = {table: snapshot.checked_table(table) for table in (VECTOR_TABLES[name][0], "documents")}
    ids = tables[VECTOR_TABLES[name][0]]["id"].combine_chunks()
    keys = _read(lambda: keys_of(read_apart(KEY_ROWS, path, name)))
    matrix = np.zeros((len(ids), folder.dimensions), dtype=np.float32)
    for found in _find_vectors(parent, folder, ids, others):
        rows = join_vector_rows(name, tables, found)
        if replace_whole(parent, folder, rows):
            return
        if keys is not None:
            is_right = _match_keys(rows, keys)
            matrix[is_right] = found[is_right]
    replace_whole(parent, folder, join_vector_rows(name, tables, matrix))


def _match_keys(rows: VectorRows, keys: RowKeys) -> np.ndarray:
    """Return which rows have the key that was written with the folder, bool (n rows,), in the order of `rows.ids`."""
    changed, _ = rows.hash_content()[1].find_changed(keys)
    is_right = np.ones(rows.n_rows, dtype=bool)
    is_right[rows.order[changed]] = False
    return is_right


def _find_vectors(
    parent: Path, folder: VectorFolder, ids: pa.Array, others: Iterable[Snapshot]
) -> Iterator[np.ndarray]:
    """Yield vectors of the rows from each place that may have them: float32 (n rows, dimensions), zeros if unknown."""
    named = [other.manifest.vectors.get(folder.name) for other in others]
    for source in dict.fromkeys([folder, *(other for other in named if other)]):
        if source.dimensions != folder.dimensions:
            continue
        for kind in (TABLE_ROWS, SEGMENT_ROWS):
            found = _read(partial(_place, kind, parent, source, ids))
            if found is not None:
                yield found


def _place(kind: str, parent: Path, source: VectorFolder, ids: pa.Array) -> np.ndarray:
    found = read_apart(kind, source.path(parent), source.name, source.dimensions).combine_chunks()
    placed = np.zeros((len(ids), source.dimensions), dtype=np.float32)
    if len(found):
        rows = positions(ids, found["id"].chunk(0))
        vectors = found["vector"].chunk(0).flatten().to_numpy().reshape(len(found), source.dimensions)
        placed[rows >= 0] = vectors[rows[rows >= 0]]
    return placed


def _read(read: Callable[[], T]) -> T | None:
    """Return what a reader of a damaged folder returns, None if it cannot; what changed rows hold may be wrong."""
    try:
        return read()
    except (NoSnapshotError, *_UNREADABLE):
        return None
