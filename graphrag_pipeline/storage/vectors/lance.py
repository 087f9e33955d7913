"""The built-in vector store: LanceDB folders below the root's `snapshots/vectors`.

A snapshot's collections are immutable folders (`folders.py`), which only `build` writes. `upsert` and `delete` serve
other collections. A collection `<name>-<suffix>` lies in `<name>/<suffix>/<name>.lance`. Keep out: the meaning of a
filter (`stores.py`).
"""

from __future__ import annotations

import asyncio
import functools
import json
import re
import shutil
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

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
from graphrag_pipeline.storage.vectors.stores import (
    ScoredIds,
    VectorRecord,
    VectorStore,
    Where,
    encode_filter,
    encode_value,
)
from graphrag_pipeline.turns import waiting

_N_REFINED = 4
"""Rows that the index finds for each wanted row: its 8-bit numbers are inexact, so exact cosines choose among more."""
_MIN_EF = 100
_N_SPARE = 8
"""Rows beyond those wanted of a search by words, to see whether equal scores go on after the last one."""

P = ParamSpec("P")
T = TypeVar("T")
Found: TypeAlias = "list[tuple[str, float]]"
"""Ids of rows with their scores, best first."""


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

    def search(self, vector: np.ndarray, k: int, ids: Collection[str] | None = None) -> Found:
        """Return the k rows nearest to `vector` by cosine similarity, nearest first, ties by id.

        Args:
            vector: float32 of shape (dimensions,); a zero vector matches nothing.
            ids: search among these rows only.
        """
        return self.begin_search(vector, k, ids)()

    @_reporting_damage
    def begin_search(self, vector: np.ndarray, k: int, ids: Collection[str] | None = None) -> Callable[[], Found]:
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
    def _sort_near(self, wait: Callable[[], pa.Table]) -> Found:
        found = wait()
        pairs = zip(found["id"].to_pylist(), found["_distance"].to_pylist(), strict=True)
        return _sorted((i, 1.0 - distance) for i, distance in pairs if distance is not None and np.isfinite(distance))

    @property
    def _is_indexed(self) -> bool:
        return self.folder.n_rows >= ANN_MIN_ROWS and self.folder.name in SEARCHED

    @_reporting_damage
    def _refine(self, wait: Callable[[], pa.Table], rows: MappedRows, vector: np.ndarray, k: int) -> Found:
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

    def search_text(self, query: str, k: int, ids: Collection[str] | None = None) -> Found:
        """Return the k rows that match the words of `query` best by BM25, best first, ties by id."""
        return self.begin_search_text(query, k, ids)()

    @_reporting_damage
    def begin_search_text(self, query: str, k: int, ids: Collection[str] | None = None) -> Callable[[], Found]:
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

        n_rows = k + _N_SPARE
        return functools.partial(self._sort_texts, begin, begin(n_rows), n_rows, k)

    @_reporting_damage
    def _sort_texts(
        self, begin: Callable[[int], Callable[[], pa.Table]], wait: Callable[[], pa.Table], n_rows: int, k: int
    ) -> Found:
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


def _sorted(pairs: Iterable[tuple[str, float]]) -> Found:
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_BATCH_IDS = 1000


class LanceCollection(VectorTable):
    """A LanceDB table with filters by attribute."""

    def search(
        self, vector: np.ndarray, k: int, ids: Collection[str] | None = None, where: Where | None = None
    ) -> ScoredIds:
        return super().search(vector, k, self._chosen(ids, where))

    def search_text(
        self, query: str, k: int, ids: Collection[str] | None = None, where: Where | None = None
    ) -> ScoredIds:
        return super().search_text(query, k, self._chosen(ids, where))

    def count(self, where: Where | None = None) -> int:
        return int(self._table.count_rows(_filter_sql(where) if where else None))

    def get(self, ids: Sequence[str]) -> list[VectorRecord]:
        found: dict[str, VectorRecord] = {}
        wanted = sorted(set(ids)) if self.folder.n_rows else []
        for start in range(0, len(wanted), _BATCH_IDS):
            part = wanted[start : start + _BATCH_IDS]
            rows = self._table.search().where(f"id IN ({quote_ids(part)})").limit(len(part)).to_arrow()
            for row in rows.to_pylist():
                vector = np.array(row["vector"], dtype=np.float32)
                found[row["id"]] = VectorRecord(row["id"], row["text"], vector, json.loads(row["attributes"]))
        return [found[record_id] for record_id in ids if record_id in found]

    @property
    def table(self) -> Any:
        return self._table

    def _chosen(self, ids: Collection[str] | None, where: Where | None) -> Collection[str] | None:
        """Return the ids to search among: those of `ids` that pass the filter; None for all."""
        if not where or not self.folder.n_rows:
            return ids
        query = self._table.search().where(_filter_sql(where)).limit(self.folder.n_rows).select(["id"])
        passing = query.to_arrow()["id"].to_pylist()
        return passing if ids is None else sorted(set(ids) & set(passing))


class LanceStore(VectorStore):
    """LanceDB tables below a folder.

    Args:
        folder: the parent of all vector tables of a root.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._opened: dict[str, LanceCollection] = {}

    def create(self, collection: str, dimensions: int, has_full_text: bool) -> None:
        place = _place_of(collection)
        if place.path(self.folder).exists():
            return
        place.path(self.folder).mkdir(parents=True)
        table = connect(place.path(self.folder)).create_table(place.name, schema=_schema(dimensions))
        if has_full_text:
            from lancedb.index import FTS

            table.create_index("text", config=FTS(base_tokenizer="icu", remove_stop_words=False))

    def drop(self, collection: str) -> None:
        self._opened.pop(collection, None)
        shutil.rmtree(_place_of(collection).path(self.folder), ignore_errors=True)

    def upsert(self, collection: str, records: Sequence[VectorRecord]) -> None:
        if records:
            table = self._need(collection).table
            last = {record.id: record for record in records}
            rows = pa.Table.from_pylist([_as_row(record) for record in last.values()], schema=table.schema)
            table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
            self._opened.pop(collection, None)  # its number of rows has changed

    def delete(self, collection: str, ids: Collection[str]) -> None:
        wanted = sorted(ids)
        for start in range(0, len(wanted), _BATCH_IDS):
            self._need(collection).table.delete(f"id IN ({quote_ids(wanted[start : start + _BATCH_IDS])})")
        self._opened.pop(collection, None)

    def count(self, collection: str, where: Where | None = None) -> int:
        opened = self._find(collection)
        return opened.count(where) if opened else 0

    def ids(self, collection: str) -> list[str]:
        opened = self._find(collection)
        return opened.ids() if opened else []

    def get(self, collection: str, ids: Sequence[str]) -> list[VectorRecord]:
        return self._need(collection).get(ids)

    def search(
        self,
        collection: str,
        vector: np.ndarray,
        k: int,
        ids: Collection[str] | None = None,
        where: Where | None = None,
    ) -> ScoredIds:
        return self._need(collection).search(vector, k, ids, where)

    def search_text(
        self,
        collection: str,
        query: str,
        k: int,
        ids: Collection[str] | None = None,
        where: Where | None = None,
    ) -> ScoredIds:
        return self._need(collection).search_text(query, k, ids, where)

    def build(self, name: str, rows: VectorRows, has_full_text: bool, previous: VectorFolder | None) -> VectorFolder:
        """Build from hard links to the previous folder and the difference if that is cheaper (`folders.py`)."""
        return build_vector_folder(self.folder, name, rows, has_full_text, previous)

    def is_whole(self, folder: VectorFolder) -> bool:
        return folder.path(self.folder).exists()  # a folder gets its final name when it is whole

    def folder_of(self, folder: VectorFolder) -> Path:
        return folder.path(self.folder)

    def open(self, folder: VectorFolder) -> LanceCollection:
        return LanceCollection(self.folder, folder)

    def _find(self, collection: str) -> LanceCollection | None:
        if collection not in self._opened:
            place = _place_of(collection)
            if not place.path(self.folder).exists():
                return None
            table = connect(place.path(self.folder)).open_table(place.name)
            dimensions = table.schema.field("vector").type.list_size
            has_full_text = any(index.columns == ["text"] for index in table.list_indices())
            folder = VectorFolder(place.name, place.content, table.count_rows(), dimensions, has_full_text, 0)
            self._opened[collection] = LanceCollection(self.folder, folder)
        return self._opened[collection]

    def _need(self, collection: str) -> LanceCollection:
        opened = self._find(collection)
        if opened is None:
            raise KeyError(f"vector store: no collection {collection!r}; create it first")
        return opened


def _place_of(collection: str) -> VectorFolder:
    """Return the folder of a collection.

    Raises:
        ValueError: the name is not valid.
    """
    if not _NAME.fullmatch(collection):
        raise ValueError(f"vector store: {collection!r} is not a valid collection name; use letters, digits, _ and -")
    name, _, content = collection.rpartition("-")
    return VectorFolder(name or content, content or name, 0, 0, False, 0)


def _schema(dimensions: int) -> pa.Schema:
    vector = ("vector", pa.list_(pa.float32(), dimensions))
    return pa.schema([("id", pa.string()), ("text", pa.string()), vector, ("attributes", pa.string())])


def _as_row(record: VectorRecord) -> dict[str, Any]:
    attributes = json.dumps(dict(record.attributes), ensure_ascii=False)
    return {"id": record.id, "text": record.text, "vector": record.vector, "attributes": attributes}


def _filter_sql(where: Where) -> str:
    """Return an SQL condition on the JSON text of flat attributes.

    A key and its value are found as text: quotes inside values are escaped by a backslash, those around keys are not.
    """
    return " AND ".join(f"({_any_sql(name, values)})" for name, values in encode_filter(where))


def _any_sql(name: str, values: Sequence[str]) -> str:
    pairs = [f"{encode_value(name)}: {value}" for value in values]
    parts = [f"{start}{pair}{end}" for pair in pairs for start in ("{", " ") for end in (",", "}")]
    return " OR ".join(f"strpos(attributes, {quote_ids([part])}) > 0" for part in parts) or "false"
