"""Vector tables of a snapshot: immutable LanceDB folders named by what they hold.

One folder a table, `<parent>/<name>/<content hash>/<name>.lance`, columns `id`, `text`, `vector`, `attributes`
(JSON). A changed table is a hard-linked copy of the last folder plus an upsert of the difference; nothing ever writes
into a folder that has its final name. LanceDB's own versions and tags are never used to keep anything. Keep out: what
is embedded and why.
"""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphrag_pipeline.storage import files
from graphrag_pipeline.tables import stable_hash

ANN_MIN_ROWS = 20_000
"""Below this many rows exact search is as fast as an index and always right."""
SEARCHED = ("default-entity-description", "default-text_unit-text", "default-community-full_content")
"""Tables that get an index; nothing searches relationships by vector, and an index costs 1 ms a row."""
MAX_UNINDEXED_SHARE = 0.1
"""Above this share of rows added since the last whole build, the folder is built anew."""


@dataclass(frozen=True)
class VectorFolder:
    """Where a vector table lives.

    Attributes:
        name: of the LanceDB table, such as `default-entity-description`.
        content: hash of ids, texts, vectors and attributes: the folder's name.
        n_unindexed: rows changed since the folder was last built whole.
    """

    name: str
    content: str
    n_rows: int
    dimensions: int
    has_full_text: bool
    n_unindexed: int

    def path(self, parent: Path) -> Path:
        return parent / self.name / self.content


def vector_rows(ids: Sequence[str], texts: Sequence[str], vectors: np.ndarray, attributes: Sequence[str]) -> pa.Table:
    """Rows of a vector table, sorted by id; `vectors` is float32 of shape (n, dimensions)."""
    dimensions = vectors.shape[1]
    flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).ravel())
    table = pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "text": pa.array(texts, pa.string()),
            "vector": pa.FixedSizeListArray.from_arrays(flat, dimensions),
            "attributes": pa.array(attributes, pa.string()),
        }
    )
    return table.sort_by("id").combine_chunks()


def build_vector_folder(
    parent: Path, name: str, rows: pa.Table, has_full_text: bool, previous: VectorFolder | None = None
) -> VectorFolder:
    """Make the folder that holds exactly `rows`, from the previous one where that is cheaper.

    Args:
        parent: folder of all vector tables of a root.
        rows: as `vector_rows` makes them.
        has_full_text: whether `text` gets a full-text index.
        previous: the folder of the last candidate, if it has this table.
    """
    dimensions = rows.schema.field("vector").type.list_size
    content = stable_hash(name, str(has_full_text), files.content_hash(_ipc_bytes(rows)))
    n_changed = 0
    final = parent / name / content
    if final.exists():
        known = previous.n_unindexed if previous and previous.content == content else 0
        return VectorFolder(name, content, rows.num_rows, dimensions, has_full_text, known)
    final.parent.mkdir(parents=True, exist_ok=True)
    working = Path(tempfile.mkdtemp(prefix=files.TEMPORARY_PREFIX, dir=final.parent))
    try:
        difference = _difference(parent, rows, previous) if previous and previous.dimensions == dimensions else None
        if difference is not None and previous is not None:
            n_changed = previous.n_unindexed + difference.n_changed
        if difference is None or previous is None or n_changed > MAX_UNINDEXED_SHARE * max(rows.num_rows, 1):
            n_changed = 0
            _build_whole(working, name, rows, has_full_text)
        else:
            _copy_and_upsert(previous.path(parent), working, name, difference)
        working.chmod(0o755)
        os.replace(working, final)
    except OSError as error:
        raise files.write_error(final, error) from error
    finally:
        shutil.rmtree(working, ignore_errors=True)
    return VectorFolder(name, content, rows.num_rows, dimensions, has_full_text, n_changed)


@dataclass(frozen=True)
class _Difference:
    upserts: pa.Table
    deleted: list[str]

    @property
    def n_changed(self) -> int:
        return self.upserts.num_rows + len(self.deleted)


def _difference(parent: Path, rows: pa.Table, previous: VectorFolder) -> _Difference | None:
    folder = previous.path(parent)
    if not folder.exists():
        return None
    old = connect(folder).open_table(previous.name).to_arrow().select(rows.schema.names).cast(rows.schema)
    old_of = dict(zip(old["id"].to_pylist(), _row_keys(old), strict=True))
    changed = [old_of.get(i) != key for i, key in zip(rows["id"].to_pylist(), _row_keys(rows), strict=True)]
    gone = sorted(set(old_of) - set(rows["id"].to_pylist()))
    return _Difference(rows.filter(pa.array(changed, pa.bool_())), gone)


def _row_keys(rows: pa.Table) -> list[int]:
    """One hash per row of everything but the id."""
    flat = rows["vector"].combine_chunks()
    matrix = np.asarray(flat.flatten()).reshape(len(rows), -1)
    texts, attributes = rows["text"].to_pylist(), rows["attributes"].to_pylist()
    return [hash((texts[i], attributes[i], matrix[i].tobytes())) for i in range(len(rows))]


def _build_whole(folder: Path, name: str, rows: pa.Table, has_full_text: bool) -> None:
    table = connect(folder).create_table(name, data=rows)
    if has_full_text and rows.num_rows:
        from lancedb.index import FTS

        # ICU finds words in scripts that do not space them; stemming and folding are for Latin scripts.
        table.create_index("text", config=FTS(base_tokenizer="icu", remove_stop_words=False))
    if rows.num_rows >= ANN_MIN_ROWS and name in SEARCHED:
        from lancedb.index import HnswSq

        table.create_index("vector", config=HnswSq(distance_type="cosine", num_partitions=1))


def _copy_and_upsert(source: Path, target: Path, name: str, difference: _Difference) -> None:
    _link_tree(source, target)
    table = connect(target).open_table(name)
    if difference.deleted:
        for start in range(0, len(difference.deleted), 1000):
            table.delete(f"id IN ({quote_ids(difference.deleted[start : start + 1000])})")
    if difference.upserts.num_rows:
        merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(difference.upserts)


def _link_tree(source: Path, target: Path) -> None:
    """Hard links for the data, copies for what LanceDB rewrites in place (its small version files)."""
    for folder, _, names in os.walk(source):
        here = target / Path(folder).relative_to(source)
        here.mkdir(exist_ok=True)
        for file in names:
            if Path(folder).name == "_versions":
                shutil.copy2(Path(folder) / file, here / file)
                continue
            try:
                os.link(Path(folder) / file, here / file)
            except OSError:
                shutil.copy2(Path(folder) / file, here / file)


def _ipc_bytes(rows: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return memoryview(sink.getvalue())


def connect(folder: Path) -> Any:
    import lancedb

    return lancedb.connect(str(folder))


def quote_ids(ids: Collection[str]) -> str:
    """Ids as SQL string literals; quotes are doubled, so O'Brien and x') OR ('1'='1 stay data."""
    return ", ".join("'" + i.replace("'", "''") + "'" for i in ids)


class VectorTable:
    """One opened vector table, read only; safe to use from several threads.

    Args:
        parent: folder of all vector tables of a root.
        folder: which table.
    """

    def __init__(self, parent: Path, folder: VectorFolder) -> None:
        self.folder = folder
        self._path = folder.path(parent)

    @functools.cached_property
    def _table(self) -> Any:
        return connect(self._path).open_table(self.folder.name)

    def search(self, vector: np.ndarray, k: int, ids: Collection[str] | None = None) -> list[tuple[str, float]]:
        """The k rows nearest to `vector` by cosine similarity, nearest first, ties by id.

        Args:
            vector: float32 of shape (dimensions,); a zero vector matches nothing.
            ids: search among these rows only.
        """
        if not self.folder.n_rows or not k or not np.any(vector) or (ids is not None and not ids):
            return []
        query = self._table.search(vector, vector_column_name="vector").distance_type("cosine").limit(k)
        if self.folder.n_rows >= ANN_MIN_ROWS and self.folder.name in SEARCHED:
            query = query.ef(max(4 * k, 100)).refine_factor(4)
        if ids is not None:
            query = query.where(f"id IN ({quote_ids(ids)})", prefilter=True)
        found = query.select(["id", "_distance"]).to_arrow()
        pairs = zip(found["id"].to_pylist(), found["_distance"].to_pylist(), strict=True)
        near = [(i, 1.0 - distance) for i, distance in pairs if distance is not None and np.isfinite(distance)]
        return sorted(near, key=lambda pair: (-pair[1], pair[0]))

    def search_text(self, query: str, k: int, ids: Collection[str] | None = None) -> list[tuple[str, float]]:
        """The k rows that match the words of `query` best by BM25, best first, ties by id."""
        if not self.folder.n_rows or not self.folder.has_full_text or not k or not query.strip():
            return []
        from lancedb.query import MatchQuery

        # MatchQuery takes the words as words: no query syntax, so quotes and operators in a question are harmless.
        search = self._table.search(MatchQuery(query, "text"), query_type="fts").limit(k)  # type: ignore[call-arg]
        if ids is not None:
            search = search.where(f"id IN ({quote_ids(ids)})", prefilter=True)
        found = search.select(["id", "_score"]).to_arrow()
        pairs = zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True)
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))

    def count(self) -> int:
        return int(self._table.count_rows())

    def ids(self) -> list[str]:
        """All ids, in no order."""
        limit = max(self.count(), 1)
        return self._table.search().select(["id"]).limit(limit).to_arrow()["id"].to_pylist()

    def vectors(self, ids: Sequence[str]) -> np.ndarray:
        """Vectors of `ids`, in that order: float32 (len(ids), dimensions); zeros for an id that is not there."""
        result = np.zeros((len(ids), self.folder.dimensions), dtype=np.float32)
        if not ids or not self.folder.n_rows:
            return result
        wanted = sorted(set(ids))
        query = self._table.search().where(f"id IN ({quote_ids(wanted)})").limit(len(wanted)).select(["id", "vector"])
        found = query.to_arrow()
        matrix = np.asarray(found["vector"].combine_chunks().flatten()).reshape(len(found), -1)
        row_of = {i: row for row, i in enumerate(found["id"].to_pylist())}
        for position, i in enumerate(ids):
            if i in row_of:
                result[position] = matrix[row_of[i]]
        return result
