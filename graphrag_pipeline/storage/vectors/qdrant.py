"""Vectors in Qdrant, one collection for each collection, with full text as sparse vectors.

A point's id is a UUID made from the id of its row, since Qdrant takes no others; the payload has the id itself. Qdrant
scales vectors to length 1, so the payload has the vector as it was. A row with a zero vector has no vector in Qdrant,
and so matches nothing. A word is a dimension of a sparse vector, with the weight of BM25 as value, which Qdrant
multiplies by idf. Ids are values of a request, never a part of a query's text. Keep out: the words of a text
(`words.py`).
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
import re
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ApiException

from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.settings.urls import has_password, hide_secrets, mask_url, secrets_of
from graphrag_pipeline.storage.vectors.stores import ScoredIds, VectorRecord, VectorStore, find_best
from graphrag_pipeline.storage.vectors.words import K1, B, count_words

KEY_NAME = "QDRANT_API_KEY"
_TIMEOUT_S = 60
_WRITE_ROWS = 256
"""A request may have 32 MB; a row of 3,072 dimensions takes about 80 kB."""
_READ_ROWS = 10_000
_MEAN_WORDS = 256
"""The mean length of texts that Qdrant's own BM25 assumes, too."""
_MIN_EF = 100
_PLAIN_NAME = re.compile(r"[\w-]{1,200}", re.ASCII)


class QdrantStore(VectorStore):
    """Collections of a Qdrant server; safe to use from several threads.

    Args:
        url: of the server, such as https://qdrant.example.com:6333; its API key is QDRANT_API_KEY in the environment.
            `:memory:` keeps the collections in this process, for tests.
        prefix: of the collections' names, one for each root, since removing a snapshot drops its collections.

    Raises:
        SettingsError: the URL holds a password.
    """

    def __init__(self, url: str, prefix: str = "graphrag") -> None:
        if has_password(url):
            raise SettingsError(f"vector_store.options: {mask_url(url)} holds a password; set {KEY_NAME} instead")
        self._url = url
        self._prefix = prefix
        self._key = os.environ.get(KEY_NAME)
        self._client = _connect(url, self._key)
        self._known: set[str] = set()

    def create(self, collection: str, dimensions: int, has_full_text: bool) -> None:
        with self._reporting():
            name = self._name(collection)
            if not self._client.collection_exists(name):
                self._client.create_collection(
                    name,
                    vectors_config={"vector": models.VectorParams(size=dimensions, distance=models.Distance.COSINE)},
                    sparse_vectors_config={"words": models.SparseVectorParams(modifier=models.Modifier.IDF)},
                    metadata={"has_full_text": has_full_text},
                    on_disk_payload=True,
                )

    def drop(self, collection: str) -> None:
        with self._reporting():
            self._known.discard(collection)
            self._client.delete_collection(self._name(collection))

    def upsert(self, collection: str, records: Sequence[VectorRecord]) -> None:
        self._require(collection)
        with self._reporting():
            config = self._client.get_collection(self._name(collection)).config
        dimensions = config.params.vectors["vector"].size  # type: ignore[index]
        if any(record.vector.shape != (dimensions,) for record in records):
            raise ValueError(f"vectors of {collection} have {dimensions} dimensions")
        has_full_text = bool((config.metadata or {}).get("has_full_text"))
        points = [_point_of(record, has_full_text) for record in {record.id: record for record in records}.values()]
        with self._reporting():
            for start in range(0, len(points), _WRITE_ROWS):
                self._client.upsert(self._name(collection), points[start : start + _WRITE_ROWS], wait=True)

    def count(self, collection: str) -> int:
        with self._reporting():
            name = self._name(collection)
            return self._client.count(name, exact=True).count if self._client.collection_exists(name) else 0

    def ids(self, collection: str) -> list[str]:
        found: list[str] = []
        with self._reporting():
            name, offset = self._name(collection), None
            while self._client.collection_exists(name):
                points, offset = self._client.scroll(name, limit=_READ_ROWS, offset=offset, with_payload=["id"])
                found += [_payload_of(point)["id"] for point in points]
                if offset is None:
                    break
        return found

    def get(self, collection: str, ids: Sequence[str]) -> list[VectorRecord]:
        self._require(collection)
        found: dict[str, VectorRecord] = {}
        with self._reporting():
            for start in range(0, len(ids), _READ_ROWS):
                wanted = [_uuid_of(i) for i in ids[start : start + _READ_ROWS]]
                for point in self._client.retrieve(self._name(collection), wanted, with_payload=True):
                    found[_payload_of(point)["id"]] = _record_of(_payload_of(point))
        return [found[i] for i in ids if i in found]

    def search(self, collection: str, vector: np.ndarray, k: int, ids: Collection[str] | None = None) -> ScoredIds:
        self._require(collection)
        query = np.asarray(vector, np.float32).tolist() if np.any(vector) else None
        return self._query(collection, "vector", query, k, ids)

    def search_text(self, collection: str, query: str, k: int, ids: Collection[str] | None = None) -> ScoredIds:
        self._require(collection)
        words = dict.fromkeys(_number_of(word) for word in count_words(query))
        sparse = models.SparseVector(indices=list(words), values=[1.0] * len(words)) if words else None
        return self._query(collection, "words", sparse, k, ids)

    def _query(self, collection: str, using: str, query: Any, k: int, ids: Collection[str] | None) -> ScoredIds:
        if query is None or not k or (ids is not None and not ids):
            return []
        chosen = None if ids is None else [_uuid_of(i) for i in set(ids)]
        among = None if chosen is None else models.Filter(must=[models.HasIdCondition(has_id=[*chosen])])

        def find(n_rows: int) -> ScoredIds:
            with self._reporting():
                points = self._client.query_points(
                    self._name(collection),
                    query=query,
                    using=using,
                    query_filter=among,
                    search_params=models.SearchParams(hnsw_ef=max(n_rows, _MIN_EF), exact=ids is not None),
                    limit=n_rows,
                    with_payload=["id"],
                ).points
            return [(str(_payload_of(point)["id"]), point.score) for point in points]

        return find_best(find, k)

    def _name(self, collection: str) -> str:
        known = collection if _PLAIN_NAME.fullmatch(collection) else stable_hash(collection)
        return f"{self._prefix}-{known}"

    def _require(self, collection: str) -> None:
        with self._reporting():
            if collection not in self._known and not self._client.collection_exists(self._name(collection)):
                raise KeyError(collection)
        self._known.add(collection)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except ApiException as error:
            secrets = {*secrets_of(self._url), *filter(None, [self._key])}
            problem = " ".join(hide_secrets(str(error), secrets).split())
            raise PipelineError(
                f"vector store {mask_url(self._url)}: {problem}; check that the server runs, its URL, and {KEY_NAME}"
            ) from None


@functools.lru_cache(maxsize=8)
def _connect(url: str, key: str | None) -> QdrantClient:
    return QdrantClient(location=url, api_key=key, timeout=_TIMEOUT_S, check_compatibility=False)


def _uuid_of(record_id: str) -> str:
    return str(uuid.UUID(bytes=hashlib.blake2b(record_id.encode(), digest_size=16).digest()))


def _number_of(word: str) -> int:
    """Return the dimension of a word: 32 bits of its hash."""
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big")


def _point_of(record: VectorRecord, has_full_text: bool) -> models.PointStruct:
    vector = np.asarray(record.vector, np.float32)
    counts = count_words(record.text) if has_full_text else {}
    length = K1 * (1 - B + B * sum(counts.values()) / _MEAN_WORDS)
    weights = {_number_of(word): n * (K1 + 1) / (n + length) for word, n in counts.items()}
    vectors: dict[str, Any] = {"vector": vector.tolist()} if vector.any() else {}
    if weights:
        vectors["words"] = models.SparseVector(indices=list(weights), values=list(weights.values()))
    payload = {
        "id": record.id,
        "text": record.text,
        "attributes": json.dumps(dict(record.attributes), ensure_ascii=False),
        "vector": base64.b64encode(vector.astype("<f4").tobytes()).decode(),
    }
    return models.PointStruct(id=_uuid_of(record.id), vector=vectors, payload=payload)


def _payload_of(point: models.Record | models.ScoredPoint) -> dict[str, Any]:
    return point.payload or {}


def _record_of(payload: dict[str, Any]) -> VectorRecord:
    vector = np.frombuffer(base64.b64decode(payload["vector"]), "<f4").astype(np.float32)
    return VectorRecord(payload["id"], payload["text"], vector, json.loads(payload["attributes"]))
