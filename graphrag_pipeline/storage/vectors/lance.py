"""The built-in vector store: LanceDB folders below the root's `snapshots/vectors`.

A snapshot's collections are immutable folders (`folders.py`), which only `build` writes. `upsert` and `delete` serve
other collections. A collection `<name>-<suffix>` lies in `<name>/<suffix>/<name>.lance`. Keep out: the meaning of a
filter (`stores.py`).
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphrag_pipeline.storage.vectors.folders import (
    VectorFolder,
    VectorRows,
    build_vector_folder,
    connect,
    quote_ids,
)
from graphrag_pipeline.storage.vectors.stores import (
    ScoredIds,
    VectorRecord,
    VectorStore,
    Where,
    encode_filter,
    encode_value,
)
from graphrag_pipeline.storage.vectors.tables import VectorTable

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
