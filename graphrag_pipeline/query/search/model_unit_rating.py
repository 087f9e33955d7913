"""Ratings of text units by a chat model, many in one call.

A text unit without a rating keeps the embedded engine's. If the model's replies to all of the first `N_FIRST` batches
are useless, no more batches are sent. Keep out: which text units are tested next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from graphrag_pipeline.models.ports import ChatReply, ChatRequest, Failure
from graphrag_pipeline.query import records
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.model_requests import request_all
from graphrag_pipeline.query.results import Context, TextUnitRecord
from graphrag_pipeline.query.search.model_rating import N_FIRST, Ratings, is_useless, ratings_request
from graphrag_pipeline.query.search.unit_rating import RatedUnit, RelevanceUnitRater


class ModelUnitRater:
    """A chat model's ratings over the embedded engine's, which count where the model gives none.

    Args:
        embedded: rates where the model does not, and breaks ties.
        reserve: tokens of the question's budget that stay for the answer.
    """

    def __init__(self, index: IndexReader, question: str, embedded: RelevanceUnitRater, reserve: int = 0) -> None:
        self.account: Counter[str] = Counter({"rated_by_model": 0, "failed_ratings": 0, "rating_calls": 0})
        self._index = index
        self._question = question
        self._embedded = embedded
        self._reserve = reserve
        self._n_useless: int | None = 0
        """Useless replies so far; None as soon as one is not."""

    def rate(self, batches: Sequence[Sequence[int]]) -> list[list[RatedUnit]]:
        """Rate as `unit_rating.UnitRater.rate` says; one call per batch.

        Raises:
            PipelineError: no rating can be had, or the budget of the root is spent.
        """
        rated = self._embedded.rate(batches)
        units = [
            records.read_text_units(self._index, np.array(batch, dtype=np.int64), np.zeros(len(batch)))
            for batch in batches
        ]
        if self._n_useless is not None and self._n_useless >= N_FIRST:
            return rated
        replies = request_all(self._index, "rating", [self._build_request(batch) for batch in units], self._reserve)
        self._count_useless(replies)
        return [
            self._take_over(of_batch, shown, {} if isinstance(reply, Failure) else reply.value)
            for of_batch, shown, reply in zip(rated, units, replies, strict=True)
        ]

    def _count_useless(self, replies: Sequence[ChatReply[Ratings] | Failure]) -> None:
        if self._n_useless is not None:
            are_useless = all(isinstance(reply, Failure) and is_useless(reply) for reply in replies)
            self._n_useless = self._n_useless + len(replies) if are_useless else None

    def _build_request(self, units: Sequence[TextUnitRecord]) -> ChatRequest[Ratings]:
        context = Context(text_units=tuple(units))
        return ratings_request(self._index, self._question, "rate_text_units", "text units", context)

    def _take_over(
        self, rated: Sequence[RatedUnit], units: Sequence[TextUnitRecord], ratings: Ratings
    ) -> list[RatedUnit]:
        self.account["rating_calls"] += 1
        self.account["rated_by_model"] += len(ratings)
        self.account["failed_ratings"] += len(rated) - len(ratings)
        return [
            replace(mine, rating=ratings.get(unit.human_readable_id, mine.rating))
            for mine, unit in zip(rated, units, strict=True)
        ]
