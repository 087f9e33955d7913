"""The built-in vector store: LanceDB folders below the root's `snapshots/vectors`.

LanceDB finds row numbers. The ids and vectors of those rows are read from files beside the table (`rows.py`), if the
folder has them. A collection `<name>-<content>` lies in `<name>/<content>/<name>.lance`. Keep out: building folders
(`folders.py`).
"""

from __future__ import annotations

import asyncio
import functools
import shutil
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa

from graphrag_pipeline.storage.vectors.folders import (
    ANN_MIN_ROWS,
    SEARCHED,
    VectorFolder,
    VectorRows,
    build_vector_folder,
    connect,
    quote_ids,
)
from graphrag_pipeline.storage.vectors.rows import MappedRows, reporting_damage
from graphrag_pipeline.storage.vectors.stores import N_SPARE, ScoredIds, SnapshotVectors
from graphrag_pipeline.turns import waiting

_N_REFINED = 4
"""Rows that the index finds for each wanted row: its 8-bit numbers are inexact, so exact cosines choose among more."""
_MIN_EF = 100

P = ParamSpec("P")
T = TypeVar("T")


def _run(awaited: Coroutine[Any, Any, Any]) -> Any:
    """Wait for LanceDB in its own event loop, so that the caller may be inside another loop."""
    from lancedb.background_loop import LOOP

    return LOOP.run(awaited)


def _begin(awaited: Coroutine[Any, Any, Any]) -> Callable[[], Any]:
    """Start work in LanceDB's event loop, and return a function that waits for its result."""
    from lancedb.background_loop import LOOP

    return functools.partial(_wait_for, asyncio.run_coroutine_threadsafe(awaited, LOOP.loop))


def _wait_for(future: Future[Any]) -> Any:
    if future.done():
        return future.result()
    with waiting():
        return future.result()


async def _collect(query: Any, n_rows: int) -> pa.Table:
    """Return the rows of a query, at most `n_rows`; the end of its results is not waited for once it has so many.

    The synchronous table leaves its readers in a cycle of references, where they hold files.

    Every wait is a change of threads, for which other requests hold Python's lock. So two waits of LanceDB are left
    out: a query with its table reads the schema first, to find blobs, which no table has here; and a query of a
    subclass reads its results to the end.
    """
    from lancedb.query import AsyncQueryBase

    query._table = None
    reader, batches, n_found = await AsyncQueryBase.to_batches(query), [], 0
    async for batch in reader:
        batches.append(batch)
        n_found += len(batch)
        if n_found >= n_rows:
            break
    return pa.Table.from_batches(batches, reader.schema)


async def _open_async(folder: Path, name: str) -> Any:
    import lancedb

    return await (await lancedb.connect_async(str(folder))).open_table(name)


def _reporting_damage(
    read: Callable[Concatenate[VectorTable, P], T],
) -> Callable[Concatenate[VectorTable, P], T]:
    """Wrap a method that reads files of a table: report damage with the way out, which LanceDB's errors lack."""

    @functools.wraps(read)
    def reading(self: VectorTable, *arguments: P.args, **named: P.kwargs) -> T:
        with reporting_damage(self.path):
            return read(self, *arguments, **named)

    return reading


class VectorTable:
    """One opened vector table, read only; safe to use from several threads.

    Args:
        parent: folder of all vector tables of a root.
        folder: the table.
    """

    def __init__(self, parent: Path, folder: VectorFolder) -> None:
        self.folder = folder
        self.path = folder.path(parent)

    @functools.cached_property
    def _table(self) -> Any:
        return connect(self.path).open_table(self.folder.name)

    @functools.cached_property
    def _async_table(self) -> Any:
        """The same table for searches: the synchronous table changes threads five times a search, 1 to 2 ms."""
        return _run(_open_async(self.path, self.folder.name))

    @functools.cached_property
    def _rows(self) -> MappedRows | None:
        return MappedRows.find(self.path, self.folder.dimensions)

    def close(self) -> None:
        """Close the files of the table; a later use opens them again."""
        if rows := self.__dict__.pop("_rows", None):
            rows.close()
        if table := self.__dict__.pop("_async_table", None):
            table.close()
        if table := self.__dict__.pop("_table", None):
            table._table.close()  # the synchronous table has no `close` of its own

    def search(self, vector: np.ndarray, k: int, ids: Collection[str] | None = None) -> ScoredIds:
        """Return the k rows nearest to `vector` by cosine similarity, nearest first, ties by id.

        Args:
            vector: float32 of shape (dimensions,); a zero vector matches nothing.
            ids: search among these rows only.
        """
        return self.begin_search(vector, k, ids)()

    @_reporting_damage
    def begin_search(self, vector: np.ndarray, k: int, ids: Collection[str] | None = None) -> Callable[[], ScoredIds]:
        """Start a search, which runs while the caller does other work; the returned function waits for its result."""
        if not self.folder.n_rows or not k or not np.any(vector) or (ids is not None and not ids):
            return list
        query = self._async_table.query().nearest_to(vector).column("vector").distance_type("cosine")
        if self._is_indexed:
            query = query.ef(max(_N_REFINED * k, _MIN_EF))
        if ids is not None:
            query = query.where(f"id IN ({quote_ids(ids)})")
        if self._is_indexed and self._rows is not None:
            n_rows = _N_REFINED * k
            query = query.limit(n_rows).select(["_distance"]).with_row_id()
            return functools.partial(self._refine, _begin(_collect(query, n_rows)), self._rows, vector, k)
        if self._is_indexed:
            query = query.refine_factor(_N_REFINED)
        return functools.partial(self._sort_near, _begin(_collect(query.limit(k).select(["id", "_distance"]), k)))

    @_reporting_damage
    def _sort_near(self, wait: Callable[[], pa.Table]) -> ScoredIds:
        found = wait()
        pairs = zip(found["id"].to_pylist(), found["_distance"].to_pylist(), strict=True)
        return _sorted((i, 1.0 - distance) for i, distance in pairs if distance is not None and np.isfinite(distance))

    @property
    def _is_indexed(self) -> bool:
        return self.folder.n_rows >= ANN_MIN_ROWS and self.folder.name in SEARCHED

    @_reporting_damage
    def _refine(self, wait: Callable[[], pa.Table], rows: MappedRows, vector: np.ndarray, k: int) -> ScoredIds:
        """Return the k best of the rows that a query finds, by exact cosine."""
        row_ids = wait()["_rowid"].to_numpy()
        vectors = rows.vectors(row_ids)
        lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(vector)
        is_near = lengths > 0
        row_ids, cosines = row_ids[is_near], (vectors[is_near] @ vector) / lengths[is_near]
        if len(cosines) > k:  # only the best and those tied with the last of them need an id
            is_best = cosines >= np.partition(cosines, len(cosines) - k)[len(cosines) - k]
            row_ids, cosines = row_ids[is_best], cosines[is_best]
        return _sorted(zip(rows.ids(row_ids), cosines.tolist(), strict=True))[:k]

    def search_text(self, query: str, k: int, ids: Collection[str] | None = None) -> ScoredIds:
        """Return the k rows that match the words of `query` best by BM25, best first, ties by id."""
        return self.begin_search_text(query, k, ids)()

    @_reporting_damage
    def begin_search_text(self, query: str, k: int, ids: Collection[str] | None = None) -> Callable[[], ScoredIds]:
        """Start a search by full text; see `begin_search`."""
        if not self.folder.n_rows or not self.folder.has_full_text or not k or not query.strip():
            return list
        from lancedb.query import MatchQuery

        # MatchQuery has no query syntax, so quotes and operators in a question are plain words.
        words = MatchQuery(query, "text")  # type: ignore[call-arg]
        search = self._async_table.query().nearest_to_text(words)
        if ids is not None:
            search = search.where(f"id IN ({quote_ids(ids)})")
        search = search.select(["id", "_score"]) if self._rows is None else search.select(["_score"]).with_row_id()

        def begin(n_rows: int) -> Callable[[], pa.Table]:
            return _begin(_collect(search.limit(n_rows), n_rows))

        n_rows = k + N_SPARE
        return functools.partial(self._sort_texts, begin, begin(n_rows), n_rows, k)

    @_reporting_damage
    def _sort_texts(
        self, begin: Callable[[int], Callable[[], pa.Table]], wait: Callable[[], pa.Table], n_rows: int, k: int
    ) -> ScoredIds:
        """Return the k best rows; of equal scores at the end LanceDB returns any, so all of them are fetched first."""
        found = wait()
        while len(found) == n_rows and _are_tied(found["_score"].to_numpy(), k):
            n_rows *= 4
            found = begin(n_rows)()
        ids = found["id"].to_pylist() if self._rows is None else self._rows.ids(found["_rowid"].to_numpy())
        return _sorted(zip(ids, found["_score"].to_pylist(), strict=True))[:k]

    def count(self) -> int:
        """Return the number of rows."""
        return int(self._table.count_rows())

    def ids(self) -> list[str]:
        """Return all ids, in any order."""
        limit = max(self.count(), 1)
        return _run(_collect(self._async_table.query().select(["id"]).limit(limit), limit))["id"].to_pylist()

    @_reporting_damage
    def vectors(self, ids: Sequence[str]) -> np.ndarray:
        """Return the vectors of `ids`, in order: float32 (len(ids), dimensions); zeros for an unknown id."""
        result = np.zeros((len(ids), self.folder.dimensions), dtype=np.float32)
        if not ids or not self.folder.n_rows:
            return result
        wanted = sorted(set(ids))
        query = self._async_table.query().where(f"id IN ({quote_ids(wanted)})").limit(len(wanted))
        found = _run(_collect(query.select(["id", "vector"]), len(wanted)))
        matrix = np.asarray(found["vector"].combine_chunks().flatten()).reshape(len(found), -1)
        row_of = {i: row for row, i in enumerate(found["id"].to_pylist())}
        for position, i in enumerate(ids):
            if i in row_of:
                result[position] = matrix[row_of[i]]
        return result


def _are_tied(scores: np.ndarray, k: int) -> bool:
    """Whether the lowest score equals the k-th best, so that further rows may have it, too."""
    return bool(scores.min() == np.partition(scores, len(scores) - k)[len(scores) - k])


def _sorted(pairs: Iterable[tuple[str, float]]) -> ScoredIds:
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


class LanceStore(SnapshotVectors):
    """LanceDB tables below a folder.

    Args:
        folder: the parent of all vector tables of a root.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def build(self, name: str, rows: VectorRows, has_full_text: bool, previous: VectorFolder | None) -> VectorFolder:
        """Build from hard links to the previous folder and the difference if that is cheaper (`folders.py`)."""
        return build_vector_folder(self.folder, name, rows, has_full_text, previous)

    def is_whole(self, folder: VectorFolder) -> bool:
        return folder.path(self.folder).exists()  # a folder gets its final name when it is whole

    def folder_of(self, folder: VectorFolder) -> Path:
        return folder.path(self.folder)

    def open(self, folder: VectorFolder) -> VectorTable:
        return VectorTable(self.folder, folder)

    def drop(self, collection: str) -> None:
        name, _, content = collection.rpartition("-")
        shutil.rmtree(self.folder / name / content, ignore_errors=True)
