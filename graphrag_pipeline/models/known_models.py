"""Facts about models that earlier commands found out, kept with the stored replies: forms of JSON, sizes of batches.

Only what differs from the first attempt is kept: a form other than the first one, a batch smaller than that of the
settings. Keep out: how it is found out (`endpoints/reply_forms.py`, `endpoints/batches.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from sqlalchemy import Connection, Table, delete, select

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.database import BATCH_SIZES, REPLY_FORMS, SharedDatabase


class KnownForms:
    """Names of the forms of structured outputs that models accept, by base URL and model."""

    def __init__(self, database: SharedDatabase) -> None:
        self._database = database

    def read(self, base_url: str, model: str) -> str | None:
        """Return the form that a model accepts; None if it is not known."""
        rows = _read(self._database, REPLY_FORMS, _key_of("reply form", base_url, model))
        return str(rows[0][1]) if rows else None

    def write(self, base_url: str, model: str, form: str | None) -> Future[None]:
        """Keep the form that a model accepts, or forget it; the future is done when the change is committed.

        Args:
            form: None forgets the model, which is then asked in the first form.
        """
        return _write(self._database, REPLY_FORMS, _key_of("reply form", base_url, model), form)


class KnownBatches:
    """The most texts that models take in one request, by base URL, path and model."""

    def __init__(self, database: SharedDatabase) -> None:
        self._database = database

    def read(self, base_url: str, path: str, model: str) -> int | None:
        """Return the most texts of a request; None if the endpoint refused none."""
        rows = _read(self._database, BATCH_SIZES, _key_of("batch size", base_url, path, model))
        return int(rows[0][1]) if rows else None

    def write(self, base_url: str, path: str, model: str, n_texts: int | None) -> Future[None]:
        """Keep the most texts of a request, or forget it; the future is done when the change is committed.

        Args:
            n_texts: None forgets the model, which then gets batches as large as the settings say.
        """
        return _write(self._database, BATCH_SIZES, _key_of("batch size", base_url, path, model), n_texts)


def _key_of(kind: str, base_url: str, *names: str) -> str:
    return stable_hash(kind, base_url.rstrip("/"), *names)


def _read(database: SharedDatabase, table: Table, key: str) -> Sequence[Any]:
    return database.read(select(table).where(table.c.model_key == key))


def _write(database: SharedDatabase, table: Table, key: str, value: object) -> Future[None]:
    """Replace the value of a model, which is in the second column; None removes its row."""
    name = table.columns.keys()[1]

    def change(connection: Connection) -> None:
        connection.execute(delete(table).where(table.c.model_key == key))
        if value is not None:
            connection.execute(database.insert(table).values({"model_key": key, name: value}))

    return database.submit(change)
