"""Token prices of models, from the price list of the package `genai-prices` (data in the package, no download).

A model is looked up at the provider that the endpoint's address belongs to. At an unknown address (a proxy, a test
server) it is looked up by name alone. Prices in the settings come first, such as 0 for a local model. The cost of an
unknown model is not counted; the log warns once.

Facts about models that earlier commands found out, kept with the stored replies: forms of JSON, sizes of batches.

Only what differs from the first attempt is kept: a form other than the first one, a batch smaller than that of the
settings.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

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


_LOG = logging.getLogger(__name__)
_MILLION = 1_000_000


@dataclass(frozen=True)
class Price:
    """Price of one model: from the settings (US dollars per million tokens), or from the list under a provider."""

    model: str
    prompt: float = 0.0
    completion: float = 0.0
    provider: str | None = None

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the US dollars of one call."""
        if self.provider is None:
            return (prompt_tokens * self.prompt + completion_tokens * self.completion) / _MILLION
        listed = _listed_price(self.model, prompt_tokens, completion_tokens, self.provider)
        return listed[1] if listed else 0.0


@functools.cache
def find_price(model: str, base_url: str, prompt: float | None = None, completion: float | None = None) -> Price | None:
    """Return the price of a model at an endpoint, or None, with one warning in the log, if it is not known.

    Args:
        prompt, completion: US dollars per million tokens from the settings; if only one is set, the other is 0.
    """
    if prompt is not None or completion is not None:
        return Price(model, prompt or 0.0, completion or 0.0)
    for provider, url in ((None, base_url), (None, None), ("openai", None)):
        listed = _listed_price(model, 1, 0, provider, url)
        if listed:
            return Price(model, provider=listed[0])
    _LOG.warning(
        "model %r at %s has no known price: its cost is not counted; set prompt_price and completion_price (0 if free)",
        model,
        urlsplit(base_url).hostname,
    )
    return None


def _listed_price(
    model: str, prompt_tokens: int, completion_tokens: int, provider: str | None, url: str | None = None
) -> tuple[str, float] | None:
    """Return provider and cost of a call by the price list; by name alone without provider and URL."""
    from genai_prices import Usage, calc_price

    usage = Usage(input_tokens=prompt_tokens, output_tokens=completion_tokens)
    try:
        price = (
            calc_price(usage, model, provider_api_url=url) if url else calc_price(usage, model, provider_id=provider)
        )
    except LookupError:
        return None
    return price.provider.id, float(price.total_price)
