"""Where vectors live: the contract of a vector store, the registry of its kinds, and opening the one that is set.

A store holds collections of rows `id`, `text`, `vector`, `attributes`. LanceDB (`lance_store.py`) is ours; another one
is one class that implements the abstract methods of `VectorStore`, registered under a name:

    register_vector_store("azure_ai_search", lambda folder, options: AzureSearchStore(**options))

and chosen by `vector_store.kind`; `vector_store.module` names the module that registers it. A snapshot's collections
are named by their content and written once: what `build` returns is whole, and no manifest names it before. Keep out:
what is embedded and why.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.storage.vectors.folders import VectorFolder, VectorRows

Scalar: TypeAlias = "str | int | float | bool | None"
Where: TypeAlias = "Mapping[str, Scalar | Collection[Scalar]]"
"""A filter: attribute -> its value, or values of which it has one; all must hold. Equal is what JSON writes equally."""
ScoredIds: TypeAlias = "list[tuple[str, float]]"
_BATCH_ROWS = 1000


@dataclass(frozen=True)
class VectorRecord:
    """One row: `vector` is float32 (dimensions,), `attributes` a flat mapping, `text` what full text searches."""

    id: str
    text: str
    vector: np.ndarray
    attributes: Mapping[str, Scalar] = field(default_factory=dict)


class VectorCollection(Protocol):
    """A collection opened for reading; safe to use from several threads."""

    def search(
        self, vector: np.ndarray, k: int, ids: Collection[str] | None = None, where: Where | None = None
    ) -> ScoredIds: ...

    def search_text(
        self, query: str, k: int, ids: Collection[str] | None = None, where: Where | None = None
    ) -> ScoredIds: ...

    def count(self, where: Where | None = None) -> int: ...

    def ids(self) -> list[str]: ...

    def get(self, ids: Sequence[str]) -> list[VectorRecord]: ...

    def vectors(self, ids: Sequence[str]) -> np.ndarray: ...


class VectorStore(ABC):
    """Collections of vectors by name: letters, digits, `_`, `-`; a store whose names allow less maps them.

    The abstract methods are all that another store needs; equal calls on equal rows give equal answers.
    """

    @abstractmethod
    def create(self, collection: str, dimensions: int, has_full_text: bool) -> None:
        """Make an empty collection; nothing if it is there."""

    @abstractmethod
    def drop(self, collection: str) -> None:
        """Remove a collection; nothing if it is not there."""

    @abstractmethod
    def upsert(self, collection: str, records: Sequence[VectorRecord]) -> None:
        """Add rows; a row whose id is there is replaced, of equal ids the last one counts.

        Raises:
            KeyError: there is no such collection; so do all methods but `create`, `drop`, `count` and `ids`.
            ValueError: a vector has another length.
        """

    @abstractmethod
    def delete(self, collection: str, ids: Collection[str]) -> None:
        """Remove rows; ids that are not there are ignored."""

    @abstractmethod
    def count(self, collection: str, where: Where | None = None) -> int:
        """Number of rows; 0 for a collection that is not there."""

    @abstractmethod
    def ids(self, collection: str) -> list[str]:
        """All ids, in no order."""

    @abstractmethod
    def get(self, collection: str, ids: Sequence[str]) -> list[VectorRecord]:
        """The rows with these ids, in that order; an id that is not there is left out."""

    @abstractmethod
    def search(
        self,
        collection: str,
        vector: np.ndarray,
        k: int,
        ids: Collection[str] | None = None,
        where: Where | None = None,
    ) -> ScoredIds:
        """The k rows nearest by cosine: (id, cosine), nearest first, ties by id.

        Args:
            vector: float32 (dimensions,); a zero vector matches nothing, and a row with one is never matched.
            ids: among these rows only; `where`: among rows with these attributes only.
        """

    @abstractmethod
    def search_text(
        self,
        collection: str,
        query: str,
        k: int,
        ids: Collection[str] | None = None,
        where: Where | None = None,
    ) -> ScoredIds:
        """The k rows whose text matches the words of `query` best: (id, score), best first, ties by id."""

    # ------------------------------------------------------------------------------------ what a snapshot needs of it

    def build(self, name: str, rows: VectorRows, has_full_text: bool, previous: VectorFolder | None) -> VectorFolder:
        """Make the immutable collection that holds exactly `rows`; one that is there whole is left alone.

        Args:
            name: of the vector table, such as `default-entity-description`.
            previous: that table in the last snapshot, for a store that builds from it.

        Raises:
            PipelineError: the store does not hold the rows afterwards.
        """
        content = stable_hash(name, str(has_full_text), rows.content_hash())
        folder = VectorFolder(name, content, rows.n_rows, rows.dimensions, has_full_text, 0)
        self.create(collection_of(folder), rows.dimensions, has_full_text)
        if not self.is_whole(folder):  # a build that was killed left rows of the same content: they are written again
            for records in _record_batches(rows):
                self.upsert(collection_of(folder), records)
        if not self.is_whole(folder):
            n_found = self.count(collection_of(folder))
            raise PipelineError(
                f"vector store: collection {collection_of(folder)} holds {n_found} rows after {rows.n_rows} were "
                "written; run again, and if that does not help look into the store's own log"
            )
        return folder

    def is_whole(self, folder: VectorFolder) -> bool:
        """Whether a collection that `build` made, or began, holds all its rows."""
        return self.count(collection_of(folder)) == folder.n_rows

    def folder_of(self, folder: VectorFolder) -> Path | None:
        """Where a collection lies in the root, listed as `damage.list_files` does; None if it is not there."""
        return None

    def open(self, folder: VectorFolder) -> VectorCollection:
        """Open a collection that `build` made."""
        return BoundCollection(self, folder)


def collection_of(folder: VectorFolder) -> str:
    """The name of a snapshot's collection: table name and content hash."""
    return f"{folder.name}-{folder.content}"


@dataclass(frozen=True)
class BoundCollection:
    """One collection of a store."""

    store: VectorStore
    folder: VectorFolder

    def search(
        self, vector: np.ndarray, k: int, ids: Collection[str] | None = None, where: Where | None = None
    ) -> ScoredIds:
        return self.store.search(collection_of(self.folder), vector, k, ids, where)

    def search_text(
        self, query: str, k: int, ids: Collection[str] | None = None, where: Where | None = None
    ) -> ScoredIds:
        return self.store.search_text(collection_of(self.folder), query, k, ids, where)

    def count(self, where: Where | None = None) -> int:
        return self.store.count(collection_of(self.folder), where)

    def ids(self) -> list[str]:
        return self.store.ids(collection_of(self.folder))

    def get(self, ids: Sequence[str]) -> list[VectorRecord]:
        return self.store.get(collection_of(self.folder), ids)

    def vectors(self, ids: Sequence[str]) -> np.ndarray:
        """Vectors of `ids`, in that order: float32 (len(ids), dimensions); zeros for an id that is not there."""
        found = {record.id: record.vector for record in self.get(ids)}
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


def encode_filter(where: Where | None) -> list[tuple[str, list[str]]]:
    """A filter as (attribute, the JSON of each value it may have), for stores that compare what JSON writes."""
    pairs: Iterable[tuple[str, Any]] = (where or {}).items()
    return [
        (name, [encode_value(value) for value in (values if _is_many(values) else [values])]) for name, values in pairs
    ]


def encode_value(value: Scalar) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_many(values: Any) -> bool:
    return isinstance(values, Collection) and not isinstance(values, str)
