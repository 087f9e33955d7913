"""Reranking models at `/rerank` endpoints: scores of texts for a question.

Cohere (v1, v2), Jina, llama.cpp and vLLM take {model, query, documents, top_n} and reply {results: [{index,
relevance_score}]}. vLLM's `/score` takes {model, text_1, text_2} and replies {data: [{index, score}]}. Both replies are
read, whichever path was asked.

Texts are sent in batches that the endpoint takes (`batches.py`). The end of a text that is too long is left out. If the
endpoint refuses a batch for the length of a text, the limit is halved, and stays so. The scores of a batch are stored,
so that an equal question is not paid twice. Keep out: which texts are reranked, and the order that
scores lead to.
"""

from __future__ import annotations

import asyncio
import copy
import json
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.accounting import Caller
from graphrag_pipeline.models.cache import KnownFacts, ResponseCache, StoredReply
from graphrag_pipeline.models.endpoints.batches import BatchLimit, limit_of_settings, send_batches
from graphrag_pipeline.models.endpoints.endpoint import Endpoint, RejectedError, Sent
from graphrag_pipeline.models.endpoints.replies import TokenUsage, estimate_tokens
from graphrag_pipeline.models.pool import Work, run_all
from graphrag_pipeline.models.ports import (
    CallFailedError,
    Failure,
    PaidReplyError,
    ReplyFormatError,
    canonical_json,
    sendable,
)
from graphrag_pipeline.models.spending import Spending
from graphrag_pipeline.settings.models import RerankModelSettings
from graphrag_pipeline.text.tokens import count_tokens_each, token_boundaries

STAGE = "reranking"
MAX_DOCUMENT_TOKENS = 2000
"""Most tokens of a text unit that are sent, until the model refuses the length: then half as many."""
MIN_DOCUMENT_TOKENS = 32
"""A text is not cut below this length; a refusal of a shorter one is a failure."""

Scores = dict[int, float]
"""Number of a text -> its score; higher is better."""


@dataclass(frozen=True)
class RerankedTexts:
    """The scores of texts.

    Attributes:
        scores: one per text, in order; None where the endpoint gave none.
        n_cut: texts of which the end was left out.
        failure: why scores are missing; "" if none is.
    """

    scores: tuple[float | None, ...]
    n_cut: int = 0
    failure: str = ""


class Reranker:
    """A reranking model with its store.

    Raises:
        SettingsError: no model is set, or the budget is in money and the model has no known price.
    """

    def __init__(
        self,
        settings: RerankModelSettings,
        cache: ResponseCache,
        spending: Spending,
        known_batches: KnownFacts | None = None,
    ) -> None:
        self._settings = settings
        self._cache = cache
        self._endpoint = Endpoint(STAGE, settings, spending)
        self._caller = Caller()
        limit = limit_of_settings(settings, settings.path, settings.batch_size, known_batches)
        self._learned = _Learned(MAX_DOCUMENT_TOKENS, limit)

    @property
    def model(self) -> str:
        """Name of the model."""
        return self._settings.model

    def for_caller(self, caller: Caller) -> Self:
        """Return this model for a caller whose accounts count its calls, too."""
        model = copy.copy(self)  # shares all state, which is in `_cache`, `_endpoint` and `_learned`
        model._caller = self._caller.joined_by(caller)
        return model

    def count_tokens(self, question: str, texts: Sequence[str]) -> int:
        """Return the most tokens that reranking should take: the question counts with each text."""
        cut = (min(n, self._learned.max_tokens) for n in count_tokens_each(list(texts)))
        return sum(cut) + len(texts) * estimate_tokens(question)

    def rerank(self, question: str, texts: Sequence[str]) -> RerankedTexts:
        """Score texts for a question; texts of batches that failed have no score.

        Raises:
            PipelineError: the endpoint cannot be used, or the budget is spent.
        """
        size = self._learned.batches.n_texts
        batches = [list(enumerate(texts))[start : start + size] for start in range(0, len(texts), size)]
        works = [Work(f"texts from {batch[0][0]}", partial(self._score, question, batch)) for batch in batches]
        found: dict[int, float] = {}
        failures: list[str] = []
        for result in run_all(STAGE, works, self._settings.most_at_once, scope=self._caller.scope):
            if isinstance(result, Failure):
                failures.append(result.reason)
            else:
                found |= result
        n_missing = len(texts) - len(found)
        failures += [f"no score for {n_missing} of {len(texts)} texts"] if n_missing and not failures else []
        n_cut = sum(n > self._learned.max_tokens for n in count_tokens_each(list(texts)))
        return RerankedTexts(tuple(found.get(i) for i in range(len(texts))), n_cut, "; ".join(failures[:1]))

    async def _score(self, question: str, batch: Sequence[tuple[int, str]]) -> Scores:
        """Return the scores of numbered texts.

        Raises:
            CallFailedError: no text got a score.
        """
        outcomes = await send_batches(batch, self._learned.batches, partial(self._score_batch, question))
        failures = [outcome for outcome in outcomes if isinstance(outcome, CallFailedError)]
        if failures and len(failures) == len(outcomes):
            raise failures[0]
        return {number: score for outcome in outcomes if isinstance(outcome, dict) for number, score in outcome.items()}

    async def _score_batch(self, question: str, batch: Sequence[tuple[int, str]], _n_attempts: int = 0) -> list[Scores]:
        """Return the score of each text of a batch that got one; send the texts shorter if one of them is too long."""
        limit = self._learned.max_tokens
        try:
            scores = await self._request(question, batch, limit)
        except RejectedError as error:
            is_of_number = len(batch) > 1 and error.problem.is_too_many
            if is_of_number or not error.problem.is_too_long or limit // 2 < MIN_DOCUMENT_TOKENS:
                raise
            self._learned.max_tokens = min(self._learned.max_tokens, limit // 2)
            return await self._score_batch(question, batch)
        return [{number: scores[number]} if number in scores else {} for number, _ in batch]

    async def _request(self, question: str, batch: Sequence[tuple[int, str]], max_tokens: int) -> Scores:
        texts = [_cut(sendable(text), max_tokens) for _, text in batch]
        body = rerank_body(self._settings.path, sendable(question), texts)
        key = self._key_of(body)
        stored = self._cache.read([key]).get(key)
        if stored is not None:
            self._caller.add_cached()
            scores = read_scores(json.loads(stored.text), len(texts))
        else:
            n_tokens = sum(map(estimate_tokens, texts)) + len(texts) * estimate_tokens(question)
            read = partial(read_scores, n=len(texts))
            sent = await self._endpoint.post(self._settings.path, body, key, TokenUsage(n_tokens), read, self._caller)
            scores = sent.value
            await asyncio.wrap_future(self._store(key, sent))
        return {batch[place][0]: score for place, score in scores.items()}

    def _key_of(self, body: Mapping[str, Any]) -> str:
        return stable_hash(STAGE, canonical_json([self._settings.model, dict(self._settings.parameters), body]))

    def _store(self, key: str, sent: Sent[Scores]) -> Future[None]:
        text = json.dumps({"results": [{"index": i, "relevance_score": s} for i, s in sorted(sent.value.items())]})
        usage = sent.usage
        reply = StoredReply(self._settings.model, STAGE, text, "stop", usage.prompt_tokens, 0, sent.seconds, sent.cost)
        return self._cache.write(key, reply)


@dataclass
class _Learned:
    """What answers showed: the most tokens of a text, and the most texts of a request."""

    max_tokens: int
    batches: BatchLimit


def _cut(text: str, max_tokens: int) -> str:
    """Return the start of a text that has at most so many tokens."""
    if len(text) <= max_tokens:  # a token has at least one character
        return text
    n_before, offsets = token_boundaries(text)
    return text[: offsets[bisect_right(n_before, max_tokens) - 1]]


def rerank_body(path: str, question: str, texts: Sequence[str]) -> dict[str, Any]:
    """Return the body of a request, in the form of the path."""
    if path.endswith("/score"):
        return {"text_1": question, "text_2": list(texts)}
    return {"query": question, "documents": list(texts), "top_n": len(texts)}


def read_scores(body: object, n: int) -> Scores:
    """Return the score of each text that a reply names; entries that cannot be read are left out.

    Raises:
        ReplyFormatError: there is no list of results; a `PaidReplyError` if none of them can be read.
    """
    values = body if isinstance(body, Mapping) else {}
    listed = next((values[name] for name in ("results", "data") if isinstance(values.get(name), list)), body)
    if not isinstance(listed, list):
        raise ReplyFormatError(f"the reply has no list `results`; it starts {_show(body)}")
    scores: Scores = {}
    for place, item in enumerate(listed):
        if not isinstance(item, Mapping):
            continue
        index = _number_of(item.get("index", place))
        score = _number_of(item.get("relevance_score", item.get("score")))
        if index is not None and score is not None and index.is_integer() and 0 <= index < n:
            scores.setdefault(int(index), score)
    if not scores and n:
        raise PaidReplyError(f"no result has an index below {n} and a score; the reply starts {_show(body)}")
    return scores


def _number_of(value: object) -> float | None:
    """Return a finite number; some servers write theirs as text ("0.93"). None for all else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _show(body: object) -> str:
    """Return the start of a reply as JSON, as the server sent it."""
    return json.dumps(body, ensure_ascii=False, default=str)[:80]
