"""Batches of texts for one request, as large as the endpoint takes them.

Many endpoints take only so many texts in one request, and few say how many. A refused batch is sent in halves, or in
parts of the size that the refusal names. If all its texts are then taken, their number was the reason, so no larger
batch is sent from then on. If a text is refused alone, the refusal was about that text, and says nothing about the
size. A batch that the server fails at, or answers with vectors of no use, is divided, too. The first
batch is a trial. What is learnt is kept for later commands (`models/cache.py`).

Keep out: which texts are sent, and what becomes of a text that is refused alone.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar
from urllib.parse import urlsplit

from graphrag_pipeline.models.cache import KnownFacts
from graphrag_pipeline.models.endpoints.endpoint import RejectedError, UnusableError
from graphrag_pipeline.models.endpoints.limits import FirstRequest
from graphrag_pipeline.models.ports import CallFailedError
from graphrag_pipeline.settings.models import EmbeddingModelSettings, RerankModelSettings

I = TypeVar("I")  # noqa: E741 - an item
T = TypeVar("T")
Send = Callable[[Sequence[I], int], Awaitable[Sequence[T]]]
"""Sends items with so many attempts that may end with status 500."""

TRIAL_S = 10.0
"""Longest wait for the result of a trial. A server that takes longer for a batch works on one request at a time."""
ATTEMPTS_OF_BATCH = 2
"""That end with status 500: a second failure shows that the first one was no accident."""
ATTEMPTS_OF_PART = 1
"""Of a batch that failed twice: one of its parts fails again, so a wait would be lost at every size."""
ATTEMPTS_OF_ONE = 3
"""Of a text alone. It fails for a reason in itself, such as a vector of NaN, so more would only take time."""
MAX_LOST = 4
"""Texts in a row that fail alone before batches are not divided any more: it is the server, not a text."""

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
        trial: the first batch.
        n_lost: texts in a row that the server failed at alone.
        n_taken: most texts that it took in one request.
        is_tried: whether a batch was taken, or refused for its size.
    """

    def __init__(
        self, name: str, most: int, kept: int | None = None, keep: Callable[[int], object] | None = None
    ) -> None:
        self.n_texts = min(most, kept or most)
        self.trial = FirstRequest(TRIAL_S)
        self.is_tried = False
        self.n_lost = self.n_taken = 0
        self._name, self._keep = name, keep
        self._is_warned = False

    def part_of(self, n_texts: int, message: str) -> int:
        """Return the size of the parts of a refused batch: that which the refusal names, or half."""
        named = [int(match[1]) for match in _NAMED.finditer(message) if 0 < int(match[1]) < n_texts]
        known = self.n_texts if self.n_texts < n_texts else 1
        return max(named, default=max(n_texts // 2, known))

    def settle(self) -> None:
        """Note that the size is known; the others need not wait."""
        self.is_tried = True
        self.trial.end()

    def refuse(self, n_texts: int, n_taken: int, reason: str) -> None:
        """Note that a batch was refused for its size: all its texts were taken in parts of at most `n_taken` texts."""
        if not self._is_warned:
            self._is_warned = True
            _LOG.warning(
                "%s refuses %d texts in one request (%s): batches are made smaller. The size that works is kept for "
                "later commands; `batch_size: %d` in its section of settings.yaml saves the attempts",
                self._name, n_texts, reason, n_taken,
            )  # fmt: skip
        if self.n_texts > n_taken:
            self.n_texts = n_taken
            if self._keep is not None:
                self._keep(n_taken)


def limit_of_settings(
    settings: EmbeddingModelSettings | RerankModelSettings, path: str, most: int, known: KnownFacts | None
) -> BatchLimit:
    """Return the limit of a model at a path, with the size that an earlier command learnt."""
    place = (settings.base_url, path, settings.model)
    host = urlsplit(settings.base_url).hostname or settings.base_url
    kept = known.read(*place) if known else None
    keep = (lambda size: known.write(*place, fact=size)) if known else None
    return BatchLimit(f"{settings.model} at {host}", most, kept, keep)


async def send_batches(items: Sequence[I], limit: BatchLimit, send: Send[I, T]) -> list[T | CallFailedError]:
    """Send items in batches that the endpoint takes.

    Args:
        send: sends one batch and returns a value for each item; raises RejectedError if the endpoint refuses it, and
            UnusableError if it fails at it.

    Returns:
        Per item, its value, or the error of the request that it was in; `RejectedError` if it was refused alone.
    """
    if len(items) < 2:
        return await _send_part(items, limit, send)
    async with limit.trial.turn(lambda: limit.is_tried):
        return await _send_parts(items, len(items), limit, send)


async def _send_parts(
    items: Sequence[I], most: int, limit: BatchLimit, send: Send[I, T], n_attempts: int = ATTEMPTS_OF_BATCH
) -> list[T | CallFailedError]:
    """Send items in parts of at most `most`: the first one alone, since it may be refused; then the others at once."""
    size = min(most, limit.n_texts)
    first = await _send_part(items[:size], limit, send, n_attempts)
    rest, size = items[size:], min(most, limit.n_texts)
    parts = (rest[start : start + size] for start in range(0, len(rest), size))
    others = await asyncio.gather(*(_send_part(part, limit, send, n_attempts) for part in parts))
    return [*first, *(outcome for part in others for outcome in part)]


async def _send_part(
    items: Sequence[I], limit: BatchLimit, send: Send[I, T], n_attempts: int = ATTEMPTS_OF_BATCH
) -> list[T | CallFailedError]:
    """Send a batch, in parts if the endpoint refuses it or fails at it; lower the limit if all are taken."""
    try:
        values = await send(items, n_attempts if len(items) > 1 else ATTEMPTS_OF_ONE)
        limit.n_lost, limit.n_taken = 0, max(limit.n_taken, len(items))
        if len(items) >= limit.n_texts:
            limit.settle()
        return [*values]
    except (RejectedError, UnusableError) as error:
        refused: CallFailedError = error
    except CallFailedError as error:
        return [error] * len(items)
    is_unusable = isinstance(refused, UnusableError)
    limit.n_lost += is_unusable and len(items) == 1
    if len(items) == 1 or (is_unusable and limit.n_lost >= MAX_LOST):
        return [refused] * len(items)
    size = limit.part_of(len(items), refused.reason)
    outcomes = await _send_parts(items, size, limit, send, ATTEMPTS_OF_PART if is_unusable else n_attempts)
    is_of_number = not (is_unusable and limit.n_taken >= len(items))  # as many were taken, so it failed by chance
    if is_of_number and not any(isinstance(outcome, CallFailedError) for outcome in outcomes):
        limit.refuse(len(items), size, refused.reason)
        limit.settle()
    return outcomes
