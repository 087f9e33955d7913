"""Vectors in Azure AI Search: an index for each number of dimensions, whose rows have a field `collection`.

A key is made of hashes of the collection and of the id, since a key has few characters; filters hold only such hashes,
so that no id is a part of a filter. `words` has the stems of a text between blanks, which Azure ranks by BM25 over the
rows of all collections. Vectors are compared one by one: all collections of an index would share one graph of HNSW.
Azure shows what was written after a while, so that a write waits until its rows are found. Keep out: the words of a
text (`words.py`).
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import AzureError, ResourceExistsError, ResourceNotFoundError
from azure.search.documents import SearchClient
from azure.search.documents.indexes import SearchIndexClient
from azure.search.documents.indexes import models as indexes
from azure.search.documents.models import VectorizedQuery

from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.settings.urls import has_password, hide_secrets, mask_url, secrets_of
from graphrag_pipeline.storage.vectors.stores import ScoredIds, VectorRecord, VectorStore, find_best
from graphrag_pipeline.storage.vectors.words import count_words

KEY_NAME = "AZURE_SEARCH_KEY"
MAX_DIMENSIONS = 4_096
_WRITE_ROWS = 256
"""A request may have 1,000 rows and 64 MB; a row of 3,072 dimensions takes about 60 kB."""
_READ_ROWS = 500
"""Azure returns at most 1,000 rows at a time; 500 keys make a filter of 33 kB."""
_SETTLE_S = 120.0
"""Seconds that written rows may take to be found; usually it is one or two."""
_STRING, _FLOATS = "Edm.String", "Collection(Edm.Single)"


class AzureSearchStore(VectorStore):
    """Collections of a search service; its key is AZURE_SEARCH_KEY in the environment.

    Args:
        url: of the service, such as https://example.search.windows.net.
        prefix: of the names of its indexes, one for each root, since removing a snapshot drops its collections.

    Raises:
        SettingsError: the URL holds a password, or there is no key.
    """

    def __init__(self, url: str, prefix: str = "graphrag") -> None:
        self._url, self._prefix, self._key = url, prefix, os.environ.get(KEY_NAME, "")
        if has_password(url) or not self._key:
            raise SettingsError(f"vector_store.options: set the key of {mask_url(url)} in {KEY_NAME}")
        self._service = SearchIndexClient(url, AzureKeyCredential(self._key))
        self._clients: dict[int, SearchClient] = {}
        self._entries: dict[str, tuple[int, bool]] = {}

    def create(self, collection: str, dimensions: int, has_full_text: bool) -> None:
        if dimensions > MAX_DIMENSIONS:
            raise PipelineError(
                f"vector store {mask_url(self._url)}: vectors have {dimensions} dimensions, and Azure AI Search takes "
                f"{MAX_DIMENSIONS}; set another model, or `embeddings.dimensions`"
            )
        self._entries.pop(collection, None)  # another process may have dropped it
        if self._find(collection) is None:
            entry = {"key": _hash(collection), "collection": "collections", "id": collection}
            entry["attributes"] = json.dumps([dimensions, has_full_text])
            self._make_index(0)
            self._make_index(dimensions)
            self._write(0, [entry])
            self._entries[collection] = (dimensions, has_full_text)

    def drop(self, collection: str) -> None:
        if (entry := self._find(collection)) is None:
            return
        self._entries.pop(collection, None)
        keys = [row["key"] for row in self._rows(entry[0], _hash(collection), ["key"])]
        self._delete(entry[0], keys)
        self._delete(0, [_hash(collection)])

    def upsert(self, collection: str, records: Sequence[VectorRecord]) -> None:
        dimensions, has_full_text = self._get(collection)
        if any(record.vector.shape != (dimensions,) for record in records):
            raise ValueError(f"vectors of {collection} have {dimensions} dimensions")
        rows = [
            {
                "key": _key_of(collection, record.id),
                "collection": _hash(collection),
                "id": record.id,
                "text": record.text,
                "words": " ".join(count_words(record.text).elements()) if has_full_text else None,
                "attributes": json.dumps(dict(record.attributes), ensure_ascii=False),
                "vector": np.asarray(record.vector, np.float32).tolist() if record.vector.any() else None,
            }
            for record in {record.id: record for record in records}.values()
        ]
        for start in range(0, len(rows), _WRITE_ROWS):
            self._write(dimensions, rows[start : start + _WRITE_ROWS])

    def count(self, collection: str) -> int:
        if (entry := self._find(collection)) is None:
            return 0
        return self._count(entry[0], f"collection eq '{_hash(collection)}'")

    def ids(self, collection: str) -> list[str]:
        entry = self._find(collection)
        return [row["id"] for row in self._rows(entry[0], _hash(collection), ["key", "id"])] if entry else []

    def get(self, collection: str, ids: Sequence[str]) -> list[VectorRecord]:
        dimensions, _ = self._get(collection)
        found: dict[str, VectorRecord] = {}
        for start in range(0, len(ids), _READ_ROWS):
            chosen = _filter_of(collection, ids[start : start + _READ_ROWS])
            columns = ["id", "text", "attributes", "vector"]
            for row in self._search(dimensions, filter=chosen, select=columns, top=_READ_ROWS):
                vector = np.asarray(row["vector"] or np.zeros(dimensions), np.float32)
                found[row["id"]] = VectorRecord(row["id"], row["text"], vector, json.loads(row["attributes"]))
        return [found[i] for i in ids if i in found]

    def search(self, collection: str, vector: np.ndarray, k: int, ids: Collection[str] | None = None) -> ScoredIds:
        dimensions, _ = self._get(collection)
        if not np.any(vector):
            return []
        numbers = np.asarray(vector, np.float32).tolist()

        def find(n_rows: int, chosen: str) -> list[dict[str, Any]]:
            query = VectorizedQuery(vector=numbers, k_nearest_neighbors=n_rows, fields="vector", exhaustive=True)
            mode = "preFilter"
            return self._search(
                dimensions, vector_queries=[query], vector_filter_mode=mode, filter=chosen, select=["id"], top=n_rows
            )

        # The score of a vector is 1 / (1 + distance), and the distance 1 - cosine.
        return [(i, 2 - 1 / score) for i, score in self._best(find, collection, k, ids)]

    def search_text(self, collection: str, query: str, k: int, ids: Collection[str] | None = None) -> ScoredIds:
        dimensions, _ = self._get(collection)
        words = " ".join(count_words(query))  # letters and digits alone, so that no operator is among them

        def find(n_rows: int, chosen: str) -> list[dict[str, Any]]:
            fields = ["words"]
            return self._search(dimensions, words, filter=chosen, search_fields=fields, select=["id"], top=n_rows)

        return self._best(find, collection, k, ids) if words else []

    def _best(self, find: Any, collection: str, k: int, ids: Collection[str] | None) -> ScoredIds:
        if not k or (ids is not None and not ids):
            return []
        chosen = f"collection eq '{_hash(collection)}'" if ids is None else _filter_of(collection, ids)
        return find_best(
            lambda n_rows: [(str(row["id"]), float(row["@search.score"])) for row in find(n_rows, chosen)], k
        )

    def _find(self, collection: str) -> tuple[int, bool] | None:
        """Return dimensions and full text of a collection, whose row is in the index without vectors."""
        if collection not in self._entries:
            chosen = f"search.in(key, '{_hash(collection)}', ',')"
            for row in self._search(0, filter=chosen, select=["attributes"], top=1):
                dimensions, has_full_text = json.loads(row["attributes"])
                self._entries[collection] = (dimensions, has_full_text)
        return self._entries.get(collection)

    def _get(self, collection: str) -> tuple[int, bool]:
        if (entry := self._find(collection)) is None:
            raise KeyError(collection)
        return entry

    def _search(self, dimensions: int, text: str | None = None, **options: Any) -> list[dict[str, Any]]:
        """Return the rows of a query; none from an index that does not exist."""
        with self._reporting():
            try:
                return list(self._client(dimensions).search(text, **options))
            except ResourceNotFoundError:
                return []

    def _count(self, dimensions: int, chosen: str) -> int:
        with self._reporting():
            try:
                found = self._client(dimensions).search(None, filter=chosen, include_total_count=True, top=0)
                return int(found.get_count() or 0)
            except ResourceNotFoundError:
                return 0

    def _rows(self, dimensions: int, collection: str, select: list[str]) -> Iterator[dict[str, Any]]:
        """Yield all rows of a collection in the order of their keys, since Azure skips over 100,000 rows at most."""
        last = ""
        while True:
            chosen = f"collection eq '{collection}' and key gt '{last}'"
            rows = self._search(dimensions, filter=chosen, select=select, order_by=["key asc"], top=_READ_ROWS)
            yield from rows
            if len(rows) < _READ_ROWS:
                return
            last = rows[-1]["key"]

    def _write(self, dimensions: int, rows: list[dict[str, Any]]) -> None:
        with self._reporting():
            self._check(self._client(dimensions).upload_documents(rows))
        self._settle(dimensions, [row["key"] for row in rows], len(rows))

    def _delete(self, dimensions: int, keys: list[str]) -> None:
        for start in range(0, len(keys), _READ_ROWS):
            part = keys[start : start + _READ_ROWS]
            with self._reporting():
                self._check(self._client(dimensions).delete_documents([{"key": key} for key in part]))
            self._settle(dimensions, part, 0)

    def _check(self, results: Iterable[Any]) -> None:
        if refused := [result for result in results if not result.succeeded]:
            raise PipelineError(
                f"vector store {mask_url(self._url)}: {len(refused)} rows were refused, the first with "
                f"{refused[0].status_code} {refused[0].error_message}; run again"
            )

    def _settle(self, dimensions: int, keys: list[str], n_rows: int) -> None:
        """Wait until so many rows with these keys are found."""
        end = time.monotonic() + _SETTLE_S
        wait_s = 0.05
        while self._count(dimensions, f"search.in(key, '{','.join(keys)}', ',')") != n_rows:
            if time.monotonic() > end:
                raise PipelineError(
                    f"vector store {mask_url(self._url)}: rows are not found {_SETTLE_S:g} s after writing"
                )
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, 2.0)

    def _client(self, dimensions: int) -> SearchClient:
        """Return the client of an index; 0 dimensions: that of the collections."""
        if dimensions not in self._clients:
            self._clients[dimensions] = self._service.get_search_client(f"{self._prefix}-{dimensions}")
        return self._clients[dimensions]

    def _make_index(self, dimensions: int) -> None:
        with self._reporting(), suppress(ResourceExistsError):
            self._service.create_index(_index_of(f"{self._prefix}-{dimensions}", dimensions))

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except AzureError as error:
            problem = " ".join(hide_secrets(str(error), {*secrets_of(self._url), self._key}).split())
            remedy = f"check the URL, {KEY_NAME}, and the quotas of the service"
            raise PipelineError(f"vector store {mask_url(self._url)}: {problem}; {remedy}") from None


def _index_of(name: str, dimensions: int) -> indexes.SearchIndex:
    # Azure makes a field filterable if a request leaves that out, with a limit of 32 kB for its values.
    fields = [
        indexes.SimpleField(name="key", type=_STRING, key=True, filterable=True, sortable=True),
        indexes.SimpleField(name="collection", type=_STRING, filterable=True),
        *(indexes.SimpleField(name=column, type=_STRING) for column in ("id", "text", "attributes")),
        indexes.SearchableField(name="words", type=_STRING, hidden=True, analyzer_name="whitespace"),
    ]
    if not dimensions:
        return indexes.SearchIndex(name=name, fields=fields)
    vector = indexes.SearchField(
        name="vector",
        type=_FLOATS,
        searchable=True,
        vector_search_dimensions=dimensions,
        vector_search_profile_name="exact",
    )
    search = indexes.VectorSearch(
        algorithms=[
            indexes.ExhaustiveKnnAlgorithmConfiguration(
                name="cosine", parameters=indexes.ExhaustiveKnnParameters(metric="cosine")
            )
        ],
        profiles=[indexes.VectorSearchProfile(name="exact", algorithm_configuration_name="cosine")],
    )
    return indexes.SearchIndex(name=name, fields=[*fields, vector], vector_search=search)


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _key_of(collection: str, record_id: str) -> str:
    return f"{_hash(collection)}-{_hash(record_id)}"


def _filter_of(collection: str, ids: Iterable[str]) -> str:
    keys = ",".join(sorted({_key_of(collection, i) for i in ids}))
    return f"search.in(key, '{keys}', ',')"
