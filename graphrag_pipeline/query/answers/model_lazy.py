"""Lazy search by a chat model: a question split into subqueries, text units rated many at a time, points mapped.

What cannot be had loses itself alone: without subqueries the question is asked as it is, a text unit without a rating
keeps the embedded engine's, a batch of text units whose points fail is counted with its reason. Keep out: which text
units are tested next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pydantic import BaseModel

from graphrag_pipeline.models.ports import ChatRequest, Failure, ReplyFormatError
from graphrag_pipeline.models.reply_json import read_json
from graphrag_pipeline.models.structured import json_schema_format
from graphrag_pipeline.query import records
from graphrag_pipeline.query.answers.model_points import MappedPoints, map_contexts, pack_batches
from graphrag_pipeline.query.context import row_costs
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.model_requests import ask_all, open_question, read_questions
from graphrag_pipeline.query.question import is_overview
from graphrag_pipeline.query.results import Context, TextUnitRecord
from graphrag_pipeline.query.search.global_ import NO_REPORT
from graphrag_pipeline.query.search.lazy import (
    LazySelection,
    RatedUnit,
    RelevanceUnitRater,
    find_by_relevance,
    find_relevant_units,
    select_lazy_context,
)
from graphrag_pipeline.query.search.lazy_candidates import rank_candidates
from graphrag_pipeline.query.search.model_rating import Ratings, ratings_request
from graphrag_pipeline.query.token_budget import answer_cost
from graphrag_pipeline.settings.settings import LazySearchSettings


class SubqueriesReply(BaseModel):
    """The schema that the model is asked for."""

    subqueries: list[str]


SUBQUERIES_FORMAT = json_schema_format(SubqueriesReply, "subqueries")


def split_question(index: IndexReader, question: str, max_subqueries: int) -> tuple[str, ...]:
    """The question, and the simpler ones that a model splits it into; the question alone where it gives none.

    Raises:
        PipelineError: no call can be answered, or the budget of the root is spent.
    """
    if max_subqueries == 1:
        return (question,)
    prompt, language = index.prompt("lazy_subqueries"), index.settings.answers.language
    messages = open_question(prompt, language, question, max_subqueries=str(max_subqueries))
    [reply] = ask_all(index, "answers", [ChatRequest("subqueries", messages, read_subqueries, SUBQUERIES_FORMAT)])
    found = () if isinstance(reply, Failure) else reply.value[:max_subqueries]
    return tuple(dict.fromkeys((question, *found)))


def read_subqueries(reply: str) -> tuple[str, ...]:
    """The questions in a reply, each once; one that is no text, or too long, is lost alone.

    Raises:
        ReplyFormatError: there is no list of questions.
    """
    for value in read_json(reply):
        listed = value.get("subqueries") if isinstance(value, dict) else value
        if isinstance(listed, list):
            return read_questions(listed)
    raise ReplyFormatError(f"no JSON object with a list of subqueries; the reply starts {reply[:80]!r}")


# --------------------------------------------------------------------------------------------------------------- rating


def find_by_model(index: IndexReader, question: str, settings: LazySearchSettings) -> LazySelection:
    """Split the question if a model answers, and test text units by who rates.

    Raises:
        PipelineError: no call can be answered, or the budget of the root is spent.
    """
    is_rated = index.settings.rating.engine == "model"
    if is_overview(question) and not is_rated:
        return find_by_relevance(index, question, settings)
    is_split = index.settings.answers.engine == "model"
    subqueries = split_question(index, question, settings.max_subqueries) if is_split else (question,)
    candidates = rank_candidates(index, subqueries, settings.budget)
    by_words = RelevanceUnitRater(index, subqueries, candidates)
    reserve = answer_cost(index.settings, settings.max_context_tokens)
    rater = ModelUnitRater(index, question, by_words, reserve) if is_rated else by_words
    return find_relevant_units(index, subqueries, candidates, rater, settings)


class ModelUnitRater:
    """A chat model's ratings over the embedded engine's, which stand in where it gives none.

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

    def rate(self, batches: Sequence[Sequence[int]]) -> list[list[RatedUnit]]:
        """See `lazy_search.UnitRater.rate`; one call per batch.

        Raises:
            PipelineError: no rating can be had, or the budget of the root is spent.
        """
        rated = self._embedded.rate(batches)
        units = [
            records.read_text_units(self._index, np.array(batch, dtype=np.int64), np.zeros(len(batch)))
            for batch in batches
        ]
        replies = ask_all(self._index, "rating", [self._ask_about(batch) for batch in units], self._reserve)
        return [
            self._take_over(of_batch, shown, {} if isinstance(reply, Failure) else reply.value)
            for of_batch, shown, reply in zip(rated, units, replies, strict=True)
        ]

    def _ask_about(self, units: Sequence[TextUnitRecord]) -> ChatRequest[Ratings]:
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


# ------------------------------------------------------------------------------------------------------------------ map


def estimate_map(index: IndexReader, selection: LazySelection, settings: LazySearchSettings) -> int:
    """Tokens of the calls that map the relevant text units, and of the answer from their points."""
    batches = _batch(index, selection, settings)
    n_data = sum(unit.n_tokens for batch in batches for unit in batch)
    needed = answer_cost(index.settings, settings.max_answer_tokens)
    return n_data + len(batches) * answer_cost(index.settings, 0) + needed


def _batch(index: IndexReader, selection: LazySelection, settings: LazySearchSettings) -> list[list[TextUnitRecord]]:
    units = select_lazy_context(index, selection, None).text_units
    costs = row_costs([unit.n_tokens for unit in units])
    return [[units[i] for i in batch] for batch in pack_batches(costs, settings.max_context_tokens)]


def map_text_units(
    index: IndexReader, question: str, selection: LazySelection, settings: LazySearchSettings
) -> MappedPoints:
    """Ask for the points of the relevant text units, batch by batch, best first.

    Raises:
        PipelineError: no call can be answered, or the budget of the root is spent.
    """
    parts = [("text units", Context(text_units=tuple(batch))) for batch in _batch(index, selection, settings)]
    limit = settings.max_answer_tokens
    return map_contexts(index, question, "lazy_search_map", parts, limit, lambda context, text: NO_REPORT)
