"""Batches of texts for one request, as large as the endpoint takes them.

Many endpoints take only so many texts in one request, and few say how many. A refused batch is sent in quarters, or in
parts of the size that the refusal names. If all its texts are then taken, their number was the reason, so no larger
batch is sent from then on, but for one attempt at twice the size that worked. If a text is refused alone, the refusal
was about that text, and says nothing about the size. The first batch is a trial: the others wait for its result, so
that an endpoint refuses a size once and not once for each request under way. What is learnt is kept for later commands
(`models/prices.py`), which make no attempt at a larger size; `doctor` does.

Keep out: which texts are sent, and what becomes of a text that is refused alone.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from graphrag_pipeline.models.endpoints.endpoint import RejectedError
from graphrag_pipeline.models.ports import CallFailedError
from graphrag_pipeline.models.prices import KnownBatches
from graphrag_pipeline.settings.models import EmbeddingModelSettings, RerankModelSettings

I = TypeVar("I")  # noqa: E741 - an item
T = TypeVar("T")

PARTS = 4
"""Parts of a refused batch: with four, few requests are refused, and the size that is found is at most halved once."""
TRIAL_S = 10.0
"""Longest wait for the result of a trial. A server that takes longer for a batch works on one request at a time."""

_NAMED = re.compile(
    r"(?:at most|maximum|max|up to|only|limit(?:ed)?|allowed|exceeds?|(?:larger|greater|more) than|<=?|>)"
    r"(?:[\s:=]+(?!\d)[\w_]+){0,4}[\s:=]+(\d+)\b(?!\s*tokens)",
    re.IGNORECASE,
)

_LOG = logging.getLogger(__name__)


class BatchLimit:
    """The most texts that an endpoint takes in one request.

    Args:
        name: of model and endpoint, for the warning.
        most: texts of a request by the settings.
        kept: the size that an earlier command learnt; None if it is not known.
        keep: receives the size that is learnt.

    Attributes:
        n_texts: texts of a request that the endpoint takes, as far as it is known.
        refused: held while the parts of a refused batch are sent, so that those of the next one know its result.
    """

    def __init__(
        self,
        name: str,
        most: int,
        kept: int | None = None,
        keep: Callable[[int], object] | None = None,
    ) -> None:
        self.n_texts = most if kept is None else min(most, kept)
        self._name = name
        self._least_refused = self.n_texts + 1
        self._keep = keep
        self._is_tried = kept is not None
        self._is_warned = False
        self._trial: asyncio.Event | None = None
        self.refused = asyncio.Lock()

    @property
    def is_settled(self) -> bool:
        """Whether no larger batch will be tried."""
        return self._is_tried and self.next_size == self.n_texts

    @property
    def next_size(self) -> int:
        """Texts of the next batch: twice the size that works, if less than twice as many were refused."""
        return self.n_texts if 2 * self.n_texts >= self._least_refused else 2 * self.n_texts

    def part_of(self, n_texts: int, message: str) -> int:
        """Return the size of the parts of a refused batch: that which the refusal names, or a quarter."""
        named = [int(match[1]) for match in _NAMED.finditer(message) if 0 < int(match[1]) < n_texts]
        known = self.n_texts if self.n_texts < n_texts else 1
        return max(named, default=max(n_texts // PARTS, known, 1))

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the trial that is under way, or be the trial if no batch was taken yet."""
        while self._trial is not None:
            try:
                await asyncio.wait_for(self._trial.wait(), TRIAL_S)
            except TimeoutError:
                break
        trial = None
        if self._trial is None and not self._is_tried:
            trial = self._trial = asyncio.Event()
        try:
            yield
        finally:
            if trial is not None:
                self._end_trial()

    def take(self, n_texts: int) -> None:
        """Note a batch that the endpoint took."""
        if n_texts >= self.next_size:
            self._is_tried = True
            if n_texts > self.n_texts:
                self._set(n_texts)
        if self.is_settled:
            self._end_trial()

    def refuse(self, n_texts: int, n_taken: int, reason: str) -> None:
        """Note that a batch was refused for its size: all its texts were taken in parts of at most `n_taken` texts."""
        self._warn(n_texts, n_taken, reason)
        self._is_tried = True
        self._least_refused = min(self._least_refused, n_texts)
        if self.n_texts > n_taken:
            self._set(n_taken)
        if self.is_settled:
            self._end_trial()

    def _set(self, n_texts: int) -> None:
        self.n_texts = n_texts
        if self._keep is not None:
            self._keep(n_texts)

    def _warn(self, n_texts: int, n_taken: int, reason: str) -> None:
        if not self._is_warned:
            self._is_warned = True
            _LOG.warning(
                "%s refuses %d texts in one request (%s): batches are made smaller. The size that works is kept for "
                "later commands; `batch_size: %d` in its section of settings.yaml saves the attempts",
                self._name, n_texts, reason, n_taken,
            )  # fmt: skip

    def _end_trial(self) -> None:
        if self._trial is not None:
            self._trial.set()
            self._trial = None


def limit_of_settings(
    settings: EmbeddingModelSettings | RerankModelSettings, path: str, most: int, known: KnownBatches | None
) -> BatchLimit:
    """Return the limit of a model at a path, with the size that an earlier command learnt."""
    place = (settings.base_url, path, settings.model)
    host = urlsplit(settings.base_url).hostname or settings.base_url
    kept = known.read(*place) if known else None
    keep = partial(known.write, *place) if known else None
    return BatchLimit(f"{settings.model} at {host}", most, kept, keep)


async def send_batches(
    items: Sequence[I], limit: BatchLimit, send: Callable[[Sequence[I]], Awaitable[Sequence[T]]]
) -> list[T | CallFailedError]:
    """Send items in batches that the endpoint takes.

    Args:
        send: sends one batch and returns a value for each item; raises RejectedError if the endpoint refuses it.

    Returns:
        Per item, its value, or the error of the request that it was in; `RejectedError` if it was refused alone.
    """
    if len(items) < 2:
        return await _Batches(limit, send).send_part(items)
    async with limit.turn():
        return await _Batches(limit, send).send_parts(items, len(items))


@dataclass(frozen=True)
class _Batches(Generic[I, T]):
    """Batches to send, and those of a refused batch: they are sent while no other refused batch is.

    Attributes:
        is_of_refused: whether they are parts of a refused batch.
    """

    limit: BatchLimit
    send: Callable[[Sequence[I]], Awaitable[Sequence[T]]]
    is_of_refused: bool = False

    async def send_parts(self, items: Sequence[I], most: int) -> list[T | CallFailedError]:
        """Send items in parts of at most `most`; once the size is known, all parts at the same time."""
        outcomes: list[T | CallFailedError] = []
        while len(outcomes) < len(items):
            rest = items[len(outcomes) :]
            size = min(most, self.limit.next_size)
            if self.limit.is_settled and size < len(rest):
                parts = [rest[start : start + size] for start in range(0, len(rest), size)]
                sent = await asyncio.gather(*map(self.send_part, parts))
                return [*outcomes, *(outcome for part in sent for outcome in part)]
            outcomes += await self.send_part(rest[:size])
        return outcomes

    async def send_part(self, items: Sequence[I]) -> list[T | CallFailedError]:
        """Send a batch, in parts if the endpoint refuses it."""
        try:
            values = await self.send(items)
            self.limit.take(len(items))
            return [*values]
        except RejectedError as error:
            refused = error
        except CallFailedError as error:
            return [error] * len(items)
        if len(items) == 1:
            return [refused]
        if self.is_of_refused:
            return await self._send_refused(items, refused)
        async with self.limit.refused:
            return await replace(self, is_of_refused=True)._send_refused(items, refused)

    async def _send_refused(self, items: Sequence[I], error: RejectedError) -> list[T | CallFailedError]:
        """Send a refused batch in parts; the limit is lowered if all of them are taken."""
        size = self.limit.part_of(len(items), error.reason)
        outcomes = await self.send_parts(items, size)
        if not any(isinstance(outcome, CallFailedError) for outcome in outcomes):
            self.limit.refuse(len(items), size, error.reason)
        return outcomes
