"""The contract of a vector store.

A store holds collections of rows `id`, `text`, `vector`, `attributes`. A class that implements the abstract methods of
`VectorStore` is a store; `register_vector_store` registers it. A snapshot's collections are named after their content
and written once. `build` returns a whole collection, and only then a manifest names it. Keep out: the choice of texts
to embed.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.storage.vectors.folders import VectorFolder, VectorRows

Scalar: TypeAlias = "str | int | float | bool | None"
ScoredIds: TypeAlias = "list[tuple[str, float]]"
"""Ids of rows with their scores, best first."""
N_SPARE = 8
"""Rows beyond those wanted, to see whether equal scores go on after the last one."""
_BATCH_ROWS = 1000


@dataclass(frozen=True)
class VectorRecord:
    """One row: `vector` is float32 (dimensions,), `attributes` a flat mapping, `text` is searched by full text."""

    id: str
    text: str
    vector: np.ndarray
    attributes: Mapping[str, Scalar] = field(default_factory=dict)


class VectorCollection(Protocol):
    """A collection opened for reading; safe to use from several threads.

    `begin_search` and `begin_search_text` return a function that returns the result. If the store can, the search runs
    while the caller does other work, else when the function is called.
    """

    def search(self, vector: np.ndarray, k: int, ids: Collection[str] | None = None) -> ScoredIds: ...

    def search_text(self, query: str, k: int, ids: Collection[str] | None = None) -> ScoredIds: ...

    def begin_search(self, vector: np.ndarray, k: int) -> Callable[[], ScoredIds]: ...

    def begin_search_text(self, query: str, k: int) -> Callable[[], ScoredIds]: ...

    def count(self) -> int: ...

    def ids(self) -> list[str]: ...

    def vectors(self, ids: Sequence[str]) -> np.ndarray: ...

    def close(self) -> None:
        """Close its files, if it has some."""


class SnapshotVectors(ABC):
    """The vectors of the snapshots of a root, one immutable collection for each vector table and content."""

    @abstractmethod
    def build(self, name: str, rows: VectorRows, has_full_text: bool, previous: VectorFolder | None) -> VectorFolder:
        """Build the immutable collection that holds exactly `rows`, unless it exists whole.

        Args:
            name: name of the vector table, such as `default-entity-description`.
            previous: that table in the last snapshot, for a store that builds from it.

        Raises:
            PipelineError: the store does not hold the rows afterwards.
        """

    @abstractmethod
    def is_whole(self, folder: VectorFolder) -> bool:
        """Return whether a collection that `build` made, or began, holds all its rows."""

    @abstractmethod
    def open(self, folder: VectorFolder) -> VectorCollection:
        """Open a collection that `build` made."""

    @abstractmethod
    def drop(self, collection: str) -> None:
        """Remove a collection if it exists."""

    def folder_of(self, folder: VectorFolder) -> Path | None:
        """Return the folder of a collection in the root, which lists its files; None without one."""
        return None


class VectorStore(SnapshotVectors):
    """Collections of vectors by name, for stores other than LanceDB.

    A name has letters, digits, `_` and `-`; a store that allows fewer characters maps names. A new kind of store
    implements the abstract methods only. Equal calls on equal rows return equal results.
    """

    @abstractmethod
    def create(self, collection: str, dimensions: int, has_full_text: bool) -> None:
        """Make an empty collection; an existing collection is left alone."""

    @abstractmethod
    def upsert(self, collection: str, records: Sequence[VectorRecord]) -> None:
        """Add rows, and replace rows of the same ids; of equal ids in `records` the last one counts.

        Raises:
            KeyError: the collection does not exist; so do all methods but `create`, `drop`, `count` and `ids`.
            ValueError: a vector has another length.
        """

    @abstractmethod
    def count(self, collection: str) -> int:
        """Return the number of rows; 0 for a collection that does not exist."""

    @abstractmethod
    def ids(self, collection: str) -> list[str]:
        """Return all ids, in any order."""

    @abstractmethod
    def get(self, collection: str, ids: Sequence[str]) -> list[VectorRecord]:
        """Return the rows with these ids, in the order of `ids`; unknown ids are left out."""

    @abstractmethod
    def search(
        self,
        collection: str,
        vector: np.ndarray,
        k: int,
        ids: Collection[str] | None = None,
    ) -> ScoredIds:
        """Return the k rows nearest by cosine: (id, cosine), nearest first, ties by id.

        Args:
            vector: float32 (dimensions,); a zero vector matches nothing, and a row with a zero vector never matches.
            ids: search among these rows only.
        """

    @abstractmethod
    def search_text(
        self,
        collection: str,
        query: str,
        k: int,
        ids: Collection[str] | None = None,
    ) -> ScoredIds:
        """Return the k rows whose text matches the words of `query` best: (id, score), best first, ties by id."""

    def build(self, name: str, rows: VectorRows, has_full_text: bool, previous: VectorFolder | None) -> VectorFolder:
        content = stable_hash(name, str(has_full_text), rows.content_hash())
        folder = VectorFolder(name, content, rows.n_rows, rows.dimensions, has_full_text, 0)
        self.create(collection_of(folder), rows.dimensions, has_full_text)
        if not self.is_whole(folder):  # a killed build left rows of the same content: write them again
            for records in _record_batches(rows):
                self.upsert(collection_of(folder), records)
        if not self.is_whole(folder):
            n_found = self.count(collection_of(folder))
            raise PipelineError(
                f"vector store: collection {collection_of(folder)} holds {n_found} rows after {rows.n_rows} were "
                "written; run again, and if that does not help read the log of the store"
            )
        return folder

    def is_whole(self, folder: VectorFolder) -> bool:
        return self.count(collection_of(folder)) == folder.n_rows

    def open(self, folder: VectorFolder) -> VectorCollection:
        return BoundCollection(self, folder)


def find_best(find: Callable[[int], ScoredIds], k: int) -> ScoredIds:
    """Return the k best rows; of equal scores at the end a service returns any, so all of them are fetched first.

    Args:
        find: returns at most that many rows, best first.
    """
    n_rows = k + N_SPARE
    while len(found := find(n_rows)) >= n_rows and found[-1][1] >= found[k - 1][1]:
        n_rows *= 4
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:k]


def collection_of(folder: VectorFolder) -> str:
    """Return the name of a snapshot's collection: table name and content hash."""
    return f"{folder.name}-{folder.content}"


@dataclass(frozen=True)
class BoundCollection:
    """One collection of a store."""

    store: VectorStore
    folder: VectorFolder

    def search(self, vector: np.ndarray, k: int, ids: Collection[str] | None = None) -> ScoredIds:
        return self.store.search(collection_of(self.folder), vector, k, ids)

    def search_text(self, query: str, k: int, ids: Collection[str] | None = None) -> ScoredIds:
        return self.store.search_text(collection_of(self.folder), query, k, ids)

    def begin_search(self, vector: np.ndarray, k: int) -> Callable[[], ScoredIds]:
        return partial(self.search, vector, k)

    def begin_search_text(self, query: str, k: int) -> Callable[[], ScoredIds]:
        return partial(self.search_text, query, k)

    def close(self) -> None:
        """Do nothing: a store keeps its own connections."""

    def count(self) -> int:
        return self.store.count(collection_of(self.folder))

    def ids(self) -> list[str]:
        return self.store.ids(collection_of(self.folder))

    def vectors(self, ids: Sequence[str]) -> np.ndarray:
        """Return the vectors of `ids`, in order: float32 (len(ids), dimensions); zeros for an unknown id."""
        found = {record.id: record.vector for record in self.store.get(collection_of(self.folder), ids)}
        result = np.zeros((len(ids), self.folder.dimensions), dtype=np.float32)
        for row, record_id in enumerate(ids):
            if record_id in found:
                result[row] = found[record_id]
        return result


def _record_batches(rows: VectorRows) -> Iterator[list[VectorRecord]]:
    for batch in rows.batches():
        for start in range(0, len(batch), _BATCH_ROWS):
            part = batch.slice(start, _BATCH_ROWS)
            matrix = np.asarray(part["vector"].flatten()).reshape(len(part), -1)
            columns = (part[name].to_pylist() for name in ("id", "text", "attributes"))
            yield [
                VectorRecord(record_id, text, vector, json.loads(attributes))
                for record_id, text, attributes, vector in zip(*columns, matrix, strict=True)
            ]
