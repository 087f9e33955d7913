"""Store of replies, vectors and facts about models, so that no request is paid or refused twice.

A reply is stored under its request key, also one that its request rejected, which the reader judges again. A vector is
stored under the embedder's fingerprint and the hash of its text. Both are committed before the caller gets them.

Facts about models that earlier commands found out are forms of JSON and sizes of batches. Only what differs from the
first attempt is kept: a form other than the first one, a batch smaller than that of the settings.

Keep out: requests, models, money.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Column, ColumnElement, Connection, Table, bindparam, delete, func, select

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.database import BATCH_SIZES, CHUNK, REPLY_FORMS, RESPONSES, VECTORS, SharedDatabase
from graphrag_pipeline.models.ports import CallFailedError

_REPLY = select(RESPONSES).where(RESPONSES.c.request_key == bindparam("key"))  # four times as fast as an IN of one
_REPLIES = select(RESPONSES).where(RESPONSES.c.request_key.in_(bindparam("keys", expanding=True)))
_VECTORS = select(VECTORS.c.text_hash, VECTORS.c.vector).where(
    VECTORS.c.fingerprint == bindparam("fingerprint"), VECTORS.c.text_hash.in_(bindparam("keys", expanding=True))
)


@dataclass(frozen=True)
class StoredReply:
    """One row of `responses` without its key."""

    model: str
    stage: str
    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    cost: float | None


class ResponseCache:
    """The replies and vectors of a root.

    Attributes:
        in_flight: request key -> future of the request that this process is sending. Its result is None when the reply
            is stored, or the error of a failed request. For one event loop.
    """

    def __init__(self, database: SharedDatabase) -> None:
        self._database = database
        self.in_flight: dict[str, asyncio.Future[CallFailedError | None]] = {}
        upsert = database.insert(RESPONSES)
        newer = {column.name: upsert.excluded[column.name] for column in RESPONSES.c if not column.primary_key}
        self._upsert_reply = upsert.on_conflict_do_update(index_elements=["request_key"], set_=newer)
        insert = database.insert(VECTORS)
        self._insert_vector = insert.on_conflict_do_update(
            index_elements=["fingerprint", "text_hash"],
            set_={"vector": insert.excluded.vector},
            where=func.length(VECTORS.c.vector) != func.length(insert.excluded.vector),
        )

    def read(self, request_keys: Collection[str]) -> dict[str, StoredReply]:
        """Return the stored replies of `request_keys`, by key; keys without a reply are left out."""
        found: dict[str, StoredReply] = {}
        for keys in _chunks(request_keys):
            statement, parameters = (_REPLIES, {"keys": keys}) if len(keys) > 1 else (_REPLY, {"key": keys[0]})
            rows = self._database.read(statement, parameters)
            found |= {row[0]: StoredReply(*row[1:]) for row in rows}
        return found

    def mean_completion(self, stage: str, model: str) -> tuple[int, float]:
        """Return the number of stored replies of a model for a stage, and their mean length in tokens."""
        is_of = (RESPONSES.c.stage == stage) & (RESPONSES.c.model == model)
        rows = self._database.read(select(func.count(), func.avg(RESPONSES.c.completion_tokens)).where(is_of))
        return rows[0][0], float(rows[0][1] or 0)

    def write(self, request_key: str, reply: StoredReply) -> Future[None]:
        """Store a reply and replace an older one; the future is done when the reply is committed."""
        return self._database.submit_rows(self._upsert_reply, [{"request_key": request_key, **vars(reply)}])

    def forget(self, request_keys: Collection[str]) -> int:
        """Delete replies, such as those about a forgotten document.

        Returns:
            The number of deleted replies.
        """
        return self._delete(RESPONSES.c.request_key, request_keys)

    def forget_others(self, request_keys: Collection[str], spared_stages: Collection[str] = ()) -> int:
        """Delete all replies except these keys and those of `spared_stages`.

        Returns:
            The number of deleted replies.
        """
        others = self._database.read(select(RESPONSES.c.request_key).where(RESPONSES.c.stage.not_in(spared_stages)))
        return self.forget({row[0] for row in others}.difference(request_keys))

    def forget_other_vectors(self, text_hashes: Collection[str]) -> int:
        """Delete the vectors of all other texts, of every model.

        Returns:
            The number of deleted vectors.
        """
        stored = {row[0] for row in self._database.read(select(VECTORS.c.text_hash).distinct())}
        return self._delete(VECTORS.c.text_hash, stored.difference(text_hashes))

    def _delete(self, column: Column[str], keys: Collection[str]) -> int:
        """Delete the rows whose `column` holds one of `keys`; return their number."""

        def change(connection: Connection) -> int:
            statements = (delete(column.table).where(column.in_(some)) for some in _chunks(keys))
            return sum(connection.execute(statement).rowcount for statement in statements)

        return self._database.submit(change).result()

    def compact(self) -> None:
        """Remove deleted rows from the database file."""
        self._database.compact()

    def read_vectors(self, fingerprint: str, text_hashes: Collection[str]) -> dict[str, np.ndarray]:
        """Return the stored vectors (float32) of a model by text hash; texts without a vector are left out."""
        found: dict[str, np.ndarray] = {}
        for keys in _chunks(text_hashes):
            rows = self._database.read(_VECTORS, {"fingerprint": fingerprint, "keys": keys})
            found |= {key: np.frombuffer(data, dtype="<f4") for key, data in rows}
        return found

    def read_any_vector(self, fingerprint: str) -> np.ndarray | None:
        """Return one stored vector of a model, which shows its dimensions; None if no vector is stored."""
        rows = self._database.read(select(VECTORS.c.vector).where(VECTORS.c.fingerprint == fingerprint).limit(1))
        return np.frombuffer(rows[0][0], dtype="<f4") if rows else None

    def write_vectors(self, fingerprint: str, vectors: Mapping[str, np.ndarray]) -> Future[None]:
        """Store vectors by text hash; one of another length is replaced. The future is done when they are committed."""
        rows = [
            {"fingerprint": fingerprint, "text_hash": key, "vector": vector.astype("<f4").tobytes()}
            for key, vector in vectors.items()
        ]
        return self._database.submit_rows(self._insert_vector, rows)


def _chunks(keys: Collection[str]) -> Iterator[list[str]]:
    distinct = list(dict.fromkeys(keys))
    for start in range(0, len(distinct), CHUNK):
        yield distinct[start : start + CHUNK]


class KnownFacts:
    """A fact about each model, by its address and further names.

    Args:
        table: with the columns `model_key` and that of the fact.
        kind: of fact, which is part of the key.
    """

    def __init__(self, database: SharedDatabase, table: Table, kind: str) -> None:
        self._database, self._table, self._kind = database, table, kind

    def read(self, base_url: str, *names: str) -> Any | None:
        """Return the fact; None if it is not known."""
        rows = self._database.read(select(self._table).where(self._is_of(base_url, *names)))
        return rows[0][1] if rows else None

    def write(self, base_url: str, *names: str, fact: object) -> Future[None]:
        """Keep the fact, or forget it if it is None; the future is done when the change is committed."""
        key, is_of = self._key_of(base_url, *names), self._is_of(base_url, *names)

        def change(connection: Connection) -> None:
            connection.execute(delete(self._table).where(is_of))
            if fact is not None:
                connection.execute(self._database.insert(self._table).values([key, fact]))

        return self._database.submit(change)

    def _key_of(self, base_url: str, *names: str) -> str:
        return stable_hash(self._kind, base_url.rstrip("/"), *names)

    def _is_of(self, base_url: str, *names: str) -> ColumnElement[bool]:
        return self._table.c.model_key == self._key_of(base_url, *names)


def known_forms(database: SharedDatabase) -> KnownFacts:
    """Return the names of the forms of structured outputs that models accept, by base URL and model."""
    return KnownFacts(database, REPLY_FORMS, "reply form")


def known_batches(database: SharedDatabase) -> KnownFacts:
    """Return the most texts that models take in one request, by base URL, path and model."""
    return KnownFacts(database, BATCH_SIZES, "batch size")
