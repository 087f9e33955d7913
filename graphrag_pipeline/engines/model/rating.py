"""Ratings of community reports by a chat model, for dynamic community selection (Microsoft Research, 2024).

Each report is rated 0 to 5 against the question, `num_repeats` times. The most frequent rating counts, and of several
the lowest. A rating that cannot be read counts `UNREADABLE`, so that the report is kept. Both are Microsoft GraphRAG's
rules. If none of the first `N_FIRST` requests of a question gets a rating that can be read, the model cannot rate: the
question ends with an error, instead of keeping and mapping every report. These requests are sent before the others.

A token budget pays for the map and the answer first (`MapReserve`): every report that is kept is mapped. A report whose
rating it does not pay for is not sent, and keeps the embedded engine's rating; if its map is not paid for either, it is
not read. `options_used` counts both under `budget`.

An index may have thousands of reports on tiny communities, and a rating of each would cost more than static search
reads. So the model is not asked about a report made without a call (on fewer entities than `reports.min_report_size`)
that the embedded engine rates 0, beyond a first call of each level, and `small_reports_per_call` short reports share a
call; 1 is the published method.

Text units are rated many in one call. One without a rating keeps the embedded engine's. If the model's replies to all
of the first `N_FIRST` batches are useless, no more batches are sent. Keep out: what a rating leads to.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from pydantic import BaseModel

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.ports import ChatReply, ChatRequest, Failure, ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.prompts import AUTO
from graphrag_pipeline.models.reply_json import json_schema_format, read_json, read_number, text_limit
from graphrag_pipeline.query import records
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.model_requests import as_data, open_question, request_all
from graphrag_pipeline.query.rendering import render_context
from graphrag_pipeline.query.results import Context, ReportRecord, TextUnitRecord
from graphrag_pipeline.query.search.raters import (
    RatedReport,
    RatedUnit,
    RelevanceRater,
    RelevanceUnitRater,
    ReportRater,
)
from graphrag_pipeline.query.token_budget import answer_cost, count_prompts, reply_tokens
from graphrag_pipeline.settings.settings import GlobalSearchSettings, LazySearchSettings
from graphrag_pipeline.text.cut_texts import cut_tokens
from graphrag_pipeline.text.tokens import count_tokens_each

MAX_RATING = 5
TOKENS_PER_RATING = 25
"""Tokens of one of many ratings in a reply."""
UNREADABLE = 1
"""Rating of a report whose rating failed: it is kept at the default threshold."""
N_FIRST = 8
"""Number of requests, the first of a question, of which at least one must get a rating that can be read."""
SHORT_TOKENS = 400
"""A report with fewer tokens may share a call: about twice the prompt and the reply of a rating of its own."""
ROW_TOKENS = 50
"""Most tokens of a report in a prompt besides its text: its number, title line and weight."""
HEADING_TOKENS = 50
"""Most tokens of a prompt's headings and marks."""


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
RATING_LIMIT: dict[str, dict[str, Any]] = {"rating": {"enum": list(range(MAX_RATING + 1))}}
Ratings = dict[int, int]
"""Human-readable id of a report -> rating."""
_Asked = tuple[ChatRequest[Ratings], list[int]]
"""A request, and the human-readable ids of the reports that it is about."""


class ModelRater:
    """Rates by the chat model of `rating`, within the token budget of the question; a `query.search.raters.Rater`."""

    def __init__(self, index: IndexReader) -> None:
        self._index = index

    def of_reports(self, by_relevance: RelevanceRater, settings: GlobalSearchSettings) -> ModelReportRater:
        """Return the rater of reports; it leaves enough tokens for the map and the answer."""
        reserve = MapReserve(self._index, by_relevance.question, settings)
        return ModelReportRater(self._index, by_relevance.question, by_relevance, settings, reserve)

    def of_text_units(
        self, question: str, by_relevance: RelevanceUnitRater, settings: LazySearchSettings
    ) -> ModelUnitRater:
        """Return the rater of text units; it leaves enough tokens for a call about a context."""
        reserve = answer_cost(self._index.settings, settings.max_context_tokens)
        return ModelUnitRater(self._index, question, by_relevance, reserve)


class ModelReportRater:
    """A chat model's ratings over those of another rater, which also recognizes an overview question.

    Args:
        embedded: its ratings count where the model is not asked.
        settings: how to rate; the section `rating` has the defaults of what is None.
        reserve: what stays of the question's token budget for the map and the answer.
    """

    def __init__(
        self,
        index: IndexReader,
        question: str,
        embedded: ReportRater,
        settings: GlobalSearchSettings,
        reserve: MapReserve,
    ) -> None:
        self.is_overview = embedded.is_overview
        self.account: Counter[str] = Counter({"rated_by_model": 0, "failed_ratings": 0})
        self._index = index
        self._question = question
        self._embedded = embedded
        self._n_repeats = settings.num_repeats or index.settings.rating.num_repeats
        self._rated_text = settings.rated_text or index.settings.rating.rated_text
        self._settings = settings
        self._reserve = reserve
        self._n_left_out = self._n_in_batches = self._n_unpaid = self._n_unread = 0
        self._n_held = 0
        self._is_proven = False
        self._useless: list[Failure] = []

    def rate(self, communities: np.ndarray) -> list[RatedReport]:
        """Rate as `ReportRater.rate` says; ties in the model's rating are broken by the embedded engine's relevance.

        Raises:
            PipelineError: no rating can be had, none of the first can be read, or the budget is spent.
        """
        rated = sorted(self._embedded.rate(communities), key=self._is_left_out)
        rows = np.array([report.row for report in rated], dtype=np.int64)
        reports = records.read_reports(self._index, rows, np.zeros(len(rows)))
        n_left_out = max(0, min(sum(map(self._is_left_out, rated)), len(rated) - self._settings.small_reports_per_call))
        n_open = len(reports) - n_left_out
        self._n_left_out += n_left_out
        sizes = dict(zip((r.human_readable_id for r in reports), self._reserve.sizes(rated), strict=True))
        votes = self._request_ratings(reports[:n_open], sizes)
        self._n_unpaid += n_open - len(votes)
        by_model = []
        for report, record in zip(rated, reports, strict=True):
            if of_report := votes.get(record.human_readable_id):
                self.account["rated_by_model"] += any(vote is not None for vote in of_report)
                by_model.append(replace(report, rating=count_votes(of_report)))
        passed = [report.row for report in by_model if report.rating >= self._settings.threshold]
        row_sizes = {report.row: size for report, size in zip(rated, sizes.values(), strict=True)}
        self._reserve.kept += [row_sizes[row] for row in passed]
        by_embedded = [r for r, record in zip(rated, reports, strict=True) if record.human_readable_id not in votes]
        by_model += [self._read_if_paid(report, row_sizes[report.row]) for report in by_embedded]
        return sorted(by_model, key=lambda r: (-r.rating, -r.relevance, -r.size, r.row))

    def _is_left_out(self, report: RatedReport) -> bool:
        """Return whether the model is not asked about a report: it is small, and words and vectors rate it 0."""
        is_small = report.size < self._index.settings.reports.min_report_size
        return self._settings.small_reports_per_call > 1 and is_small and not report.rating

    def _read_if_paid(self, report: RatedReport, size: int) -> RatedReport:
        """Return a report that the model did not rate; its rating falls below the threshold if no map call has room."""
        report = replace(report, is_unasked=True)
        if report.rating < self._settings.threshold:
            return report
        if self._reserve.allows(0, [size]):
            self._reserve.kept.append(size)
            return report
        self._n_unread += 1
        return replace(report, rating=self._settings.threshold - 1)

    @property
    def options_used(self) -> dict[str, dict[str, int]]:
        """What options changed: reports of batches, and reports that the model did not rate, or that are not read."""
        counts = {
            "small_reports_per_call": {"rated": self._n_in_batches, "not_rated": self._n_left_out},
            "budget": {"rated_by_embedded": self._n_unpaid, "not_read": self._n_unread},
        }
        return {name: of_option for name, of_option in counts.items() if any(of_option.values())}

    def _request_ratings(
        self, reports: Sequence[ReportRecord], sizes: Mapping[int, int]
    ) -> dict[int, list[int | None]]:
        """Return the votes on each report, by its human-readable id; None is one that cannot be read.

        A report that the budget does not pay for has no votes.

        Args:
            sizes: tokens of each report in the map's prompt, by its human-readable id.
        """
        asked = self._choose_paid(self._build_requests(reports), sizes)
        if self._reserve.has_limit:
            self._n_held = self._reserve.needed([sizes[number] for _, numbers in asked for number in numbers])
        repeats = range(self._n_repeats)
        repeated = [(replace(request, repeat=n), numbers) for request, numbers in asked for n in repeats]
        votes: dict[int, list[int | None]] = {}
        by_number = {report.human_readable_id: report for report in reports}
        shorter: list[_Asked] = []
        for (request, numbers), reply in self._send(repeated):
            excess = reply.n_excess if isinstance(reply, Failure) else 0
            again = self._shorten([by_number[number] for number in numbers], request.repeat, excess)
            shorter += again
            if not again:
                self._count(numbers, reply, votes)
        for (_, numbers), reply in self._send(shorter):
            self.account["shortened_reports"] += 1
            self._count(numbers, reply, votes)
        return votes

    def _send(self, asked: Sequence[_Asked]) -> Iterator[tuple[_Asked, ChatReply[Ratings] | Failure]]:
        requests = [request for request, _ in asked]
        replies: list[ChatReply[Ratings] | Failure] = []
        while not self._is_proven and len(replies) < len(requests):
            first = self._request(requests[len(replies) :][: N_FIRST - len(self._useless)])
            self._check_first(first)
            replies += first
        replies += self._request(requests[len(replies) :])
        return zip(asked, replies, strict=True)

    def _request(self, requests: Sequence[ChatRequest[Ratings]]) -> list[ChatReply[Ratings] | Failure]:
        return request_all(self._index, "rating", requests, self._n_held)

    def _check_first(self, replies: Sequence[ChatReply[Ratings] | Failure]) -> None:
        """Note whether the model can rate: `N_FIRST` useless replies before any other mean that it cannot.

        Raises:
            PipelineError: it cannot.
        """
        self._is_proven = any(isinstance(reply, ChatReply) for reply in replies)
        self._useless += [reply for reply in replies if isinstance(reply, Failure) and is_useless(reply)]
        if self._is_proven or len(self._useless) < N_FIRST:
            return
        model = self._index.settings.chat_model_for("rating").model
        answered = [failure for failure in self._useless if not failure.is_unanswered]
        said = (
            f"none of the first {N_FIRST} replies of `{model}` has a rating of a community report that can be read"
            if answered
            else f"`{model}` answered none of the first {N_FIRST} requests"
        )
        reason = (answered or self._useless)[-1].reason.rstrip(".")
        retry = "" if answered else "Ask again when the server answers, name"
        raise PipelineError(
            f"rating: {said} ({reason}). No further report was rated, and no answer was asked for. "
            f"{retry or 'Name'} another model in `rating.model`, or let the embedded engine rate: "
            "`rating.engine: embedded`."
        )

    def _count(
        self, numbers: Sequence[int], reply: ChatReply[Ratings] | Failure, votes: dict[int, list[int | None]]
    ) -> None:
        read = {} if isinstance(reply, Failure) else reply.value
        if isinstance(reply, Failure) and not reply.request_key:  # the budget did not let it be sent
            return
        self.account["failed_ratings"] += len(numbers) - len(read)
        for number in numbers:
            votes.setdefault(number, []).append(read.get(number))

    def _shorten(self, reports: Sequence[ReportRecord], repeat: int, n_excess: int) -> list[_Asked]:
        """Return requests that fit the window of the model: of each report of a batch, or of the start of a report."""
        if not n_excess:
            return []
        if len(reports) > 1:
            asked = [(self._build_request(report), [report.human_readable_id]) for report in reports]
        else:
            [report] = reports
            text = cut_tokens(self._text_of(report), n_excess)
            asked = [(self._build_request(report, text), [report.human_readable_id])] if text else []
        return [(replace(request, repeat=repeat), numbers) for request, numbers in asked]

    def _choose_paid(self, asked: Sequence[_Asked], sizes: Mapping[int, int]) -> Sequence[_Asked]:
        """Return the first requests that the budget pays for if every report that they rate is kept and mapped."""
        if not self._reserve.has_limit:
            return asked
        n_reply, spent = reply_tokens(self._index.settings, "rating"), 0
        to_map: list[int] = []
        for n_paid, ((_, numbers), n_prompt) in enumerate(
            zip(asked, count_prompts([request for request, _ in asked]), strict=True)
        ):
            spent += self._n_repeats * (n_prompt + n_reply)
            to_map += [sizes[number] for number in numbers]
            if not self._reserve.allows(spent, to_map):
                return asked[:n_paid]
        return asked

    def _build_requests(self, reports: Sequence[ReportRecord]) -> list[_Asked]:
        """Return one request for each report, or for each batch of short ones."""
        n_per_call = self._settings.small_reports_per_call
        sizes = (
            count_tokens_each([self._text_of(report) for report in reports])
            if n_per_call > 1
            else [SHORT_TOKENS] * len(reports)
        )
        alone = [report for report, size in zip(reports, sizes, strict=True) if size >= SHORT_TOKENS]
        short = [report for report, size in zip(reports, sizes, strict=True) if size < SHORT_TOKENS]
        batches = [short[start : start + n_per_call] for start in range(0, len(short), n_per_call)]
        self._n_in_batches += len(short)
        return [
            *((self._build_request(report), [report.human_readable_id]) for report in alone),
            *((self._build_batch_request(batch), [r.human_readable_id for r in batch]) for batch in batches),
        ]

    def _text_of(self, report: ReportRecord) -> str:
        return report.content if self._rated_text == "full_content" else f"{report.title}\n\n{report.summary}"

    def _build_request(self, report: ReportRecord, text: str | None = None) -> ChatRequest[Ratings]:
        """Return the request for the rating of a report by its text, or by another one."""
        text = self._text_of(report) if text is None else text
        number = report.human_readable_id
        prompt = self._index.prompt("rate_report")
        messages = open_question(prompt, AUTO, self._question, description=as_data(text))

        def parse(reply: str) -> Ratings:
            return {number: read_rating(reply, prompt.echoes)}

        limits: dict[str, dict[str, Any]] = {
            "reason": text_limit(self._index.settings.reply_tokens_for("rating") // 2),
            **RATING_LIMIT,
        }
        return ChatRequest(f"report {number}", messages, parse, RESPONSE_FORMAT, limits=limits)

    def _build_batch_request(self, reports: Sequence[ReportRecord]) -> ChatRequest[Ratings]:
        shown = [replace(report, content=self._text_of(report)) for report in reports]
        context = Context(reports=tuple(shown))
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
    most = index.settings.own_reply_tokens("rating") + TOKENS_PER_RATING * len(numbers)
    schema = batch_format(numbers)
    parse = partial(read_ratings, numbers=numbers)
    return ChatRequest(record, messages, parse, schema, max_tokens=most, limits=RATING_LIMIT)


def batch_format(numbers: Sequence[int]) -> dict[str, Any]:
    """Return the schema of one rating for each of these numbers; it allows no other, and no endless list."""
    limited = copy.deepcopy(BATCH_FORMAT)
    schema = limited["json_schema"]["schema"]
    schema["$defs"]["NumberedRating"]["properties"]["number"]["enum"] = list(numbers)
    schema["properties"]["ratings"]["maxItems"] = len(numbers)
    return limited


def read_rating(reply: str, echoes: PromptEchoes | None = None) -> int:
    """Return the rating in a reply: 4, "4", "4/5", 3.6 (3, as Microsoft GraphRAG reads it).

    Args:
        echoes: of the prompt; a rating whose reason repeats it is copied, too. None accepts any reason.

    Raises:
        ReplyFormatError: the reply has no rating from 0 to 5 of the model's own.
    """
    for value in read_json(reply):
        fields = value if isinstance(value, dict) else {}
        if "rating" in fields:
            reason = fields.get("reason")
            if echoes and isinstance(reason, str) and echoes.holds(reason):
                raise ReplyFormatError(f"the reason {reason[:80]!r} repeats the prompt: say why, then rate")
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
    number = read_number(value, MAX_RATING)
    if number is None or not 0 <= number <= MAX_RATING:
        raise ReplyFormatError(f"the rating is {str(value)[:40]!r}, not a number from 0 to {MAX_RATING}")
    return int(number)


def is_useless(failure: Failure) -> bool:
    """Return whether a request was sent and got no rating: its reply is prose or empty, refused, or did not come.

    A prompt that is too long for the window of the model tells nothing of the model: it is sent again with less text.
    """
    return bool(failure.request_key) and not failure.n_excess


def count_votes(votes: Sequence[int | None]) -> int:
    """Return the most frequent rating, of several the lowest; a vote that cannot be read (None) is `UNREADABLE`."""
    counts = Counter(UNREADABLE if vote is None else vote for vote in votes)
    return min(counts, key=lambda rating: (-counts[rating], rating))


# ----------------------------------------------------------------------------------------------------------- text units


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


# ------------------------------------------------------------------------------------------------------------- reserve


class MapReserve:
    """What the map of the reports kept so far needs, and whether the budget pays for more.

    Attributes:
        kept: tokens of each report that is kept.
    """

    def __init__(self, index: IndexReader, question: str, settings: GlobalSearchSettings) -> None:
        self.kept: list[int] = []
        self._index = index
        self._limit = settings.max_context_tokens
        self._is_paid = index.settings.answers.engine == "model"
        self._answer = answer_cost(index.settings, settings.max_answer_tokens) if self._is_paid else 0
        fixed = sum(count_tokens_each([index.prompt("global_search_map").text, question])) + HEADING_TOKENS
        self._call = fixed + reply_tokens(index.settings, "answers")

    @property
    def has_limit(self) -> bool:
        """Whether the question has a token budget."""
        return self._index.calls.budget.most is not None

    def sizes(self, reports: Sequence[RatedReport]) -> list[int]:
        """Return the tokens of each report in the map's prompt."""
        column = self._index.column("community_reports", "n_tokens")
        return [int(column[report.row]) + ROW_TOKENS for report in reports]

    def allows(self, n_tokens: int, more: Sequence[int] = ()) -> bool:
        """Return whether the budget pays for so many tokens, for a map with more reports, and for the answer."""
        return self._index.calls.budget.is_affordable(n_tokens + self.needed(more))

    def needed(self, more: Sequence[int] = ()) -> int:
        """Return the most tokens of a map with more reports, and of the answer."""
        return self._answer + self._map_cost([*self.kept, *more])

    def _map_cost(self, sizes: Sequence[int]) -> int:
        """Return the most tokens of the map; each call but the last is full up to the largest report."""
        if not self._is_paid or not sizes:
            return 0
        n_calls = min(len(sizes), 1 + sum(sizes) // max(self._limit - max(sizes) - HEADING_TOKENS, 1))
        return sum(sizes) + n_calls * self._call
