"""Ratings of community reports by a chat model, for dynamic community selection (Microsoft Research, 2024).

Each report is rated 0 to 5 against the question, `num_repeats` times; the most frequent rating counts. A failed rating
affects only its report, which keeps the embedded engine's rating. There may be thousands of reports on tiny
communities, so many of them are rated in one call. Of one level only the `MAX_TINY` that the embedded engine finds most
relevant are rated: reading all of them took a third of the tokens of static search. Keep out: what a rating leads to.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np
from pydantic import BaseModel

from graphrag_pipeline.models.ports import ChatRequest, Failure, ReplyFormatError
from graphrag_pipeline.models.prompts import AUTO
from graphrag_pipeline.models.reply_json import read_json
from graphrag_pipeline.models.structured import json_schema_format
from graphrag_pipeline.query import records
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.model_requests import as_data, open_question, request_all
from graphrag_pipeline.query.rendering import render_context
from graphrag_pipeline.query.results import Context, ReportRecord
from graphrag_pipeline.query.search.report_rating import RatedReport, Rater
from graphrag_pipeline.settings.settings import GlobalSearchSettings

MAX_RATING = 5
MAX_TINY = 100
BATCH = 20
"""Number of reports on communities under `reports.min_report_size` that are rated in one call."""
_NUMBER = re.compile(r"\s*(\d(?:[.,]\d{1,6})?)\s*(?:/\s*5)?\s*")


class RatingReply(BaseModel):
    """The schema that the model is asked for."""

    reason: str
    rating: int


class NumberedRating(BaseModel):
    """One of many ratings."""

    number: int
    rating: int


class RatingsReply(BaseModel):
    """The schema that the model is asked for about several reports."""

    ratings: list[NumberedRating]


RESPONSE_FORMAT = json_schema_format(RatingReply, "rating")
BATCH_FORMAT = json_schema_format(RatingsReply, "ratings")
Ratings = dict[int, int]
"""Human-readable id of a report -> rating."""


class ModelRater:
    """A chat model's ratings over those of another rater, which also recognizes an overview question.

    Args:
        embedded: its ratings count where the model gives none.
        settings: how to rate; the section `rating` has the defaults.
        reserve: tokens of the question's budget that stay for the answer.
    """

    def __init__(
        self, index: IndexReader, question: str, embedded: Rater, settings: GlobalSearchSettings, reserve: int = 0
    ) -> None:
        self.is_overview = embedded.is_overview
        self.account: Counter[str] = Counter({"rated_by_model": 0, "failed_ratings": 0})
        self._index = index
        self._question = question
        self._embedded = embedded
        self._n_repeats = settings.num_repeats or index.settings.rating.num_repeats
        self._rated_text = settings.rated_text or index.settings.rating.rated_text
        self._max_concurrency = settings.max_concurrency
        self._reserve = reserve

    def rate(self, communities: np.ndarray) -> list[RatedReport]:
        """Rate as `Rater.rate` says; ties in the model's rating are broken by the embedded engine's relevance.

        Raises:
            PipelineError: no rating can be had, or the budget is spent.
        """
        rated = self._embedded.rate(communities)
        rows = np.array([report.row for report in rated], dtype=np.int64)
        reports = records.read_reports(self._index, rows, np.zeros(len(rows)))
        votes = self._request_ratings(reports)
        by_model = []
        for report, record in zip(rated, reports, strict=True):
            of_report = votes.get(record.human_readable_id)
            self.account["rated_by_model"] += of_report is not None
            by_model.append(replace(report, rating=_majority(of_report)) if of_report else report)
        return sorted(by_model, key=lambda r: (-r.rating, -r.relevance, -r.size, r.row))

    def _request_ratings(self, reports: Sequence[ReportRecord]) -> dict[int, list[int]]:
        """Return the ratings of each report, by its human-readable id; `reports` are most relevant first."""
        is_tiny = [report.size < self._index.settings.reports.min_report_size for report in reports]
        tiny = list(compress(reports, is_tiny))[:MAX_TINY]
        requests = [
            self._build_request(report) for report, tiny_one in zip(reports, is_tiny, strict=True) if not tiny_one
        ]
        requests += [self._build_batch_request(tiny[start : start + BATCH]) for start in range(0, len(tiny), BATCH)]
        repeated = [replace(request, repeat=repeat) for request in requests for repeat in range(self._n_repeats)]
        votes: dict[int, list[int]] = {}
        for reply in request_all(self._index, "rating", repeated, self._reserve, self._max_concurrency):
            for number, rating in {} if isinstance(reply, Failure) else reply.value.items():
                votes.setdefault(number, []).append(rating)
        n_asked = len(reports) - sum(is_tiny) + len(tiny)
        self.account["failed_ratings"] += n_asked * self._n_repeats - sum(map(len, votes.values()))
        return votes

    def _build_request(self, report: ReportRecord) -> ChatRequest[Ratings]:
        text = report.content if self._rated_text == "full_content" else f"{report.title}\n\n{report.summary}"
        number = report.human_readable_id
        prompt = self._index.prompt("rate_report")
        messages = open_question(prompt, AUTO, self._question, description=as_data(text))
        return ChatRequest(f"report {number}", messages, lambda reply: {number: read_rating(reply)}, RESPONSE_FORMAT)

    def _build_batch_request(self, reports: Sequence[ReportRecord]) -> ChatRequest[Ratings]:
        context = Context(reports=tuple(reports))
        return ratings_request(self._index, self._question, "rate_reports", "reports", context)


def ratings_request(
    index: IndexReader, question: str, prompt: str, kind: str, context: Context
) -> ChatRequest[Ratings]:
    """Return the request for a rating of every report or text unit of a context.

    Args:
        prompt: its name.
        kind: of the context's records, such as "reports".
    """
    numbers = context.record_numbers
    data = as_data(render_context(context))
    messages = open_question(index.prompt(prompt), AUTO, question, context_data=data)
    record = f"{kind} {', '.join(map(str, numbers))}"
    return ChatRequest(record, messages, lambda reply: read_ratings(reply, numbers), BATCH_FORMAT)


def read_rating(reply: str) -> int:
    """Return the rating in a reply: 4, "4", "4/5", 3.6 (4).

    Raises:
        ReplyFormatError: the reply has no rating from 0 to 5.
    """
    for value in read_json(reply):
        fields = {str(key).strip().casefold(): item for key, item in value.items()} if isinstance(value, dict) else {}
        if "rating" in fields:
            return _read_number(fields["rating"])
    raise ReplyFormatError(f"no JSON object with a rating; the reply starts {reply[:80]!r}")


def read_ratings(reply: str, numbers: Sequence[int]) -> Ratings:
    """Return the ratings of several reports; one that cannot be read, or is of another report, is left out alone.

    Raises:
        ReplyFormatError: the reply has no rating.
    """
    found: Ratings = {}
    for value in read_json(reply):
        items = value.get("ratings") if isinstance(value, dict) else value
        for item in items if isinstance(items, list) else ():
            number = item.get("number") if isinstance(item, dict) else None
            if isinstance(number, int) and number in numbers:
                with suppress(ReplyFormatError):
                    found.setdefault(number, _read_number(item.get("rating")))
    if not found:
        raise ReplyFormatError(f"no rating of a report in the prompt; the reply starts {reply[:80]!r}")
    return found


def _read_number(value: Any) -> int:
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    number = float(match.group(1).replace(",", ".")) if match else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= MAX_RATING:
        raise ReplyFormatError(f"the rating is {str(value)[:40]!r}, not a number from 0 to {MAX_RATING}")
    return round(number)


def _majority(votes: Sequence[int]) -> int:
    """Return the most frequent rating; of several the highest: an irrelevant report costs less than a missed one."""
    counts = Counter(votes)
    return max(counts, key=lambda rating: (counts[rating], rating))
