"""A vector store in memory: an example of the one class that another store needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from graphrag_pipeline.storage.vectors import register_vector_store
from graphrag_pipeline.storage.vectors.stores import (
    ScoredIds,
    VectorRecord,
    VectorStore,
)
from graphrag_pipeline.storage.vectors.words import count_words

KIND = "memory"


@dataclass
class _Rows:
    dimensions: int
    records: dict[str, VectorRecord] = field(default_factory=dict)


class MemoryVectorStore(VectorStore):
    """Collections as dictionaries; exact search."""

    def __init__(self) -> None:
        self.collections: dict[str, _Rows] = {}

    def create(self, collection: str, dimensions: int, has_full_text: bool) -> None:
        self.collections.setdefault(collection, _Rows(dimensions))

    def drop(self, collection: str) -> None:
        self.collections.pop(collection, None)

    def upsert(self, collection: str, records: Sequence[VectorRecord]) -> None:
        rows = self.collections[collection]
        if any(record.vector.shape != (rows.dimensions,) for record in records):
            raise ValueError(f"vectors of {collection} have {rows.dimensions} dimensions")
        rows.records |= {record.id: record for record in records}

    def count(self, collection: str) -> int:
        return len(self.collections[collection].records) if collection in self.collections else 0

    def ids(self, collection: str) -> list[str]:
        return list(self.collections[collection].records) if collection in self.collections else []

    def get(self, collection: str, ids: Sequence[str]) -> list[VectorRecord]:
        records = self.collections[collection].records
        return [records[record_id] for record_id in ids if record_id in records]

    def search(
        self,
        collection: str,
        vector: np.ndarray,
        k: int,
        ids: Collection[str] | None = None,
    ) -> ScoredIds:
        rows = [record for record in self._chosen(collection, ids) if record.vector.any()]
        length = np.linalg.norm(vector)
        scored = [
            (record.id, float(record.vector @ vector / (np.linalg.norm(record.vector) * length)))
            for record in (rows if length > 0 else [])
        ]
        return _best(scored, k)

    def search_text(
        self,
        collection: str,
        query: str,
        k: int,
        ids: Collection[str] | None = None,
    ) -> ScoredIds:
        words = _words(query)
        rows = self._chosen(collection, ids)
        scored = [
            (record.id, len(words & found) / len(found)) for record in rows if words & (found := _words(record.text))
        ]
        return _best(scored, k)

    def _chosen(self, collection: str, ids: Collection[str] | None) -> list[VectorRecord]:
        records = self.collections[collection].records
        return list(records.values()) if ids is None else [records[i] for i in set(ids) if i in records]


def open_memory_store(folder: Path, options: Mapping[str, Any]) -> MemoryVectorStore:
    """The store of a folder, the same one each time."""
    return _OPENED.setdefault(folder, MemoryVectorStore())


def _words(text: str) -> set[str]:
    return set(count_words(text))


def _best(scored: list[tuple[str, float]], k: int) -> ScoredIds:
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))[:k]


_OPENED: dict[Path, MemoryVectorStore] = {}
register_vector_store(KIND, open_memory_store)
