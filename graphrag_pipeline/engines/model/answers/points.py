"""Points of community reports by a chat model: the map step of global search (Edge et al. 2024, arXiv 2404.16130).

Reports are shuffled with a fixed seed and packed into batches of `max_context_tokens`, as Microsoft GraphRAG does. All
batches are sent at once; each call returns points with a score of 0 to 100. Points of score 0 are dropped. So are,
counted by reason, points that repeat the prompt, and with `answers.cited_points_only` points that cite no record that
was shown. A point whose score or text cannot be read is left out alone. A batch of which only such points came was not
read: its call fails. A batch whose call fails is counted with its reason.

The order before the shuffle is that of the reports table: finest level first, then by community. Python's random
generator shuffles them with the seed, so relevant reports are spread over the batches. Batches are cut by the tokens of
Microsoft GraphRAG's table row: community number, title, occurrence weight, content, rank. Inside a batch the reports
with the highest weight, then rank, come first.

Keep out: which reports are read, and what is done with the points.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from pydantic import BaseModel

from graphrag_pipeline.citations import Cited, parse_citations, render_citation, replace_written
from graphrag_pipeline.engines.model.answers.shown import Shown, keep_shown, shown_numbers, split_context
from graphrag_pipeline.models.ports import ChatReply, ChatRequest, Failure, ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.reply_json import clean_text, json_schema_format, read_json, read_number, text_limit
from graphrag_pipeline.query.answers.answering import MappedPoints, estimate_static
from graphrag_pipeline.query.context import PART_OVERHEAD, pack_batches
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.model_requests import as_data, open_question, request_all
from graphrag_pipeline.query.rendering import render_context
from graphrag_pipeline.query.results import Context, ReportRecord
from graphrag_pipeline.query.search.community_selection import Selection, select_global_context
from graphrag_pipeline.query.search.global_ import Point
from graphrag_pipeline.query.token_budget import answer_cost
from graphrag_pipeline.settings.settings import GlobalSearchSettings
from graphrag_pipeline.text.tokens import count_tokens_each

HEADER = "-----Reports-----\nid|title|occurrence weight|content|rank\n"


@dataclass(frozen=True)
class ReportBatch:
    """The reports of one call, in order, with weight and rank in their titles; `n_tokens` with the header."""

    reports: tuple[ReportRecord, ...]
    n_tokens: int


def batch_reports(index: IndexReader, reports: Sequence[ReportRecord], max_tokens: int, seed: int) -> list[ReportBatch]:
    """Shuffle reports and cut them into batches of at most `max_tokens` (see the module); a longer report is alone."""
    order = sorted(reports, key=lambda report: (-report.level, report.community))
    random.Random(seed).shuffle(order)
    weights = find_weights(index, order)
    rows = [
        f"{report.community}|{report.title}|{weight}|{report.content}|{report.rank}\n"
        for report, weight in zip(order, weights, strict=True)
    ]
    [header, *costs] = count_tokens_each([HEADER, *rows])
    batches = []
    for batch in pack_batches(costs, max_tokens, header):
        best_first = sorted(batch, key=lambda i: (-weights[i], -order[i].rank))
        shown = tuple(_show_weight(order[i], weights[i]) for i in best_first)
        batches.append(ReportBatch(shown, header + sum(costs[i] for i in batch)))
    return batches


def find_weights(index: IndexReader, reports: Sequence[ReportRecord]) -> list[float]:
    """Return the share of text units that mention an entity of a report's community, 0-1; the largest report has 1."""
    rows = index.rows_of_numbers("communities", "community", (report.community for report in reports))
    counts = []
    for community in index.snapshot.take("communities", rows, ["entity_ids"]):
        entities = index.snapshot.rows_of("entities", list(community["entity_ids"]))
        units = index.snapshot.adjacency.of_all("entity_text_units", entities[entities >= 0])[1]
        counts.append(len(np.unique(units)))
    largest = max(counts, default=0) or 1
    return [count / largest for count in counts]


def _show_weight(report: ReportRecord, weight: float) -> ReportRecord:
    return replace(report, title=f"{report.title} (occurrence weight {weight:.2f}, rank {report.rank:g})")


_ROUNDING = 1e-9
"""Keeps 8.2 / 10 at 82."""


class MapPoint(BaseModel):
    """One point of the schema that the model is asked for."""

    description: str
    score: int


class MapReply(BaseModel):
    """The schema that the model is asked for; what comes is read more leniently."""

    points: list[MapPoint]


RESPONSE_FORMAT = json_schema_format(MapReply, "points")
LEAST_POINTS, POINTS_PER_RECORD = 30, 10
"""Points that a schema allows in any case, and for each record shown: it stops only a model that repeats itself."""
ECHOED = "points that repeat the prompt"
UNCITED = "points without a citation"
NO_SCORE, NO_TEXT = "points without a score", "points without text"
UNUSABLE = {
    ECHOED: "say what the data says",
    UNCITED: "cite the numbers that the data holds",
    NO_SCORE: "give each point a score from 0 to 100",
    NO_TEXT: "give each point a description",
}
"""Why a point is left out although it may say something -> what to do."""
CUT_EMPTY = "the reply was cut off before its first whole point"


@dataclass(frozen=True)
class ReadPoints:
    """Texts that cite human-readable ids, with scores of 1 to 100, and counts of what was left out, by reason."""

    points: tuple[tuple[str, int], ...]
    lost: Mapping[str, int]


def map_reports(
    index: IndexReader, question: str, selection: Selection, settings: GlobalSearchSettings
) -> MappedPoints:
    """Request the points of the kept reports, batch by batch.

    Raises:
        PipelineError: no call can be answered, or the budget is spent.
    """
    reports = select_global_context(index, selection).reports
    row_of = {report.human_readable_id: rated.row for report, rated in zip(reports, selection.kept, strict=True)}
    batches = batch_reports(index, reports, settings.max_context_tokens, settings.seed)
    overhead = _overhead(index, question)
    mapped = map_contexts(
        index,
        question,
        "global_search_map",
        [("reports", Context(reports=batch.reports)) for batch in batches],
        settings.max_answer_tokens,
        lambda context, text: _row_of(text, context.reports, row_of),
    )
    n_tokens = sum(batch.n_tokens + overhead for batch in batches)
    own = {"reports": len(reports), "calls": len(batches), "prompt_tokens": n_tokens}
    is_static = selection.method == "static"
    return replace(
        mapped,
        account={**mapped.account, "prompt_tokens": n_tokens},
        static=own if is_static else estimate_static(index, settings, overhead),
    )


def map_contexts(
    index: IndexReader,
    question: str,
    prompt: str,
    parts: Sequence[tuple[str, Context]],
    max_answer_tokens: int,
    row_of: Callable[[Context, str], int],
) -> MappedPoints:
    """Ask for the points of some contexts, in one call each.

    Args:
        prompt: its name.
        parts: what a context shows, such as "reports", and the context.
        max_answer_tokens: of the answer to come, which is left of the token budget.
        row_of: row of the report that a point of a context is from.

    Raises:
        PipelineError: no call can be answered, or the budget is spent.
    """
    asked = _ask(index, question, prompt, parts, answer_cost(index.settings, max_answer_tokens))
    replies = [reply for _, reply in asked]
    points: list[Point] = []
    lost: Counter[str] = Counter()
    for batch, (context, reply) in enumerate(asked):
        if not isinstance(reply, Failure):
            lost.update(reply.value.lost)
            lost["replies cut off"] += reply.is_cut
            points += [Point(row_of(context, text), "", text, score, batch) for text, score in reply.value.points]
    failed = [reason for reason in map(_why_unread, replies) if reason]
    return MappedPoints(
        points=tuple(sorted(points, key=lambda point: -point.score)),
        account={"batches": len(asked), "failed": len(failed)},
        lost=dict(+lost),
        failures=tuple(dict.fromkeys(failed)),
    )


def _why_unread(reply: ChatReply[ReadPoints] | Failure) -> str:
    """Return why a reply says nothing about its batch; "" if it does."""
    if isinstance(reply, Failure):
        return reply.reason
    return CUT_EMPTY if reply.is_cut and not reply.value.points else ""


def _ask(
    index: IndexReader, question: str, prompt: str, parts: Sequence[tuple[str, Context]], reserve: int
) -> list[tuple[Context, ChatReply[ReadPoints] | Failure]]:
    """Return each context with its reply; one that does not fit the model's window is asked about in halves."""
    requests = [_build_request(index, question, prompt, kind, context) for kind, context in parts]
    replies = request_all(index, "answers", requests, reserve)
    asked: list[tuple[Context, ChatReply[ReadPoints] | Failure]] = []
    for (kind, context), reply in zip(parts, replies, strict=True):
        halves = split_context(context) if isinstance(reply, Failure) and reply.n_excess else ()
        more = [(kind, half) for half in halves]
        asked += _ask(index, question, prompt, more, reserve) if more else [(context, reply)]
    return asked


def _overhead(index: IndexReader, question: str) -> int:
    """Return the tokens of a prompt without its reports, and of the question."""
    return sum(count_tokens_each([index.prompt("global_search_map").text, question])) + PART_OVERHEAD


def _build_request(
    index: IndexReader, question: str, prompt: str, kind: str, context: Context
) -> ChatRequest[ReadPoints]:
    settings, max_words = index.settings.answers, index.settings.words_for("answers")
    messages = open_question(
        index.prompt(prompt),
        settings.language,
        question,
        context_data=as_data(render_context(context)),
        max_length=str(max_words),
    )
    shown, echoes = shown_numbers(context), index.prompt(prompt).echoes
    numbers = ", ".join(map(str, context.record_numbers))
    parse = partial(read_points, shown=shown, echoes=echoes, is_citation_needed=settings.cited_points_only)
    n_points = max(LEAST_POINTS, POINTS_PER_RECORD * len(context.record_numbers))
    limits = {"points": {"maxItems": n_points}, "description": text_limit(max_words)}  # half of the reply's tokens
    request = ChatRequest(f"{kind} {numbers}", messages, parse, RESPONSE_FORMAT, limits=limits)
    return _cap_map(index, request)


def _cap_map(index: IndexReader, request: ChatRequest[ReadPoints]) -> ChatRequest[ReadPoints]:
    """Return a request for points without the cap of answers, unless a token budget counts on it.

    The words that the prompt asks for are the only limit that Microsoft GraphRAG sets. A model that writes more would
    lose whole points at a cap.
    """
    if most := index.settings.answers.max_map_tokens:
        return replace(request, max_tokens=most, cap_option="answers.max_map_tokens")
    return replace(request, is_uncapped=index.calls.budget.most is None)


def _row_of(text: str, batch: Sequence[ReportRecord], row_of: Mapping[int, int]) -> int:
    """Return the row of the first report that a point cites, else of the first of its batch."""
    named: list[int] = []

    def note(cited: Cited) -> str:
        named.extend(int(n) for kind, numbers in cited if kind == "Reports" for n in numbers)
        return ""

    replace_written(text, note)
    return next((row_of[n] for n in named if n in row_of), row_of[batch[0].human_readable_id])


# -------------------------------------------------------------------------------------------------------------- replies


def read_points(
    reply: str, shown: Shown, echoes: PromptEchoes | None = None, is_citation_needed: bool = False
) -> ReadPoints:
    """Return the points in a reply; citations of records that were not shown are removed.

    Args:
        echoes: of the prompt; None accepts any text.
        is_citation_needed: whether a point without a citation that is left is dropped.

    Raises:
        ReplyFormatError: the reply has no JSON with a list of points, or only points that repeat the prompt, cite
            nothing that was shown, or have no score or text.
    """
    listed = next(_find_lists(read_json(reply)), None)
    if listed is None:
        raise ReplyFormatError(f"no JSON object with a list of points; the reply starts {reply[:80]!r}")
    echoes, lost = echoes or PromptEchoes(), Counter[str]()
    points = []
    for item in listed:
        fields = item if isinstance(item, dict) else {}
        score = read_score(fields.get("score"))
        text = fields.get("description")
        if score is None or not isinstance(text, str) or not re.search(r"\w", text):
            lost[NO_SCORE if score is None else NO_TEXT] += 1
        elif echoes.holds(text):
            lost[ECHOED] += 1
        elif score == 0:
            lost["points of score 0"] += 1
        else:
            points.append((cite_shown(clean_text(text), shown, lost), score))
    cited = [(text, score) for text, score in points if parse_citations(text) or not is_citation_needed]
    lost[UNCITED] += len(points) - len(cited)
    unusable = [reason for reason in UNUSABLE if lost[reason]]
    has_own = cited or (lost["points of score 0"] and unusable in ([], [ECHOED]))
    if unusable and not has_own:
        counts = " and ".join(f"{reason} ({lost[reason]})" for reason in unusable)
        raise ReplyFormatError(f"the reply has only {counts}: {', and '.join(UNUSABLE[one] for one in unusable)}")
    return ReadPoints(tuple(cited), dict(+lost))


def _find_lists(values: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield lists of points, wrapped in an object or bare."""
    for value in values:
        if isinstance(value, dict):
            points = value.get("points")
            if isinstance(points, list | dict):
                yield points if isinstance(points, list) else [points]
            elif "description" in value:
                yield [value]
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            yield value


def read_score(value: Any) -> int | None:
    """Return a score of 0 to 100 from 85, 85.6, "85", "85/100", "8.5 out of 10" or 0.85 (all 85); None otherwise.

    A number between 0 and 1 is read as a share of 100: small models write such scores.
    """
    number = read_number(value, 100)
    if number is None or not 0 <= number <= 100:
        return None
    return round(100 * number) if 0 < number < 1 else int(number + _ROUNDING)


def cite_shown(text: str, shown: Shown, lost: Counter[str]) -> str:
    """Return a text without the citations of records that were not shown; `lost` counts them."""

    def replace(cited: Cited) -> str:
        named, n_invented = keep_shown(cited, shown)
        lost["invented citations"] += n_invented
        kinds = dict.fromkeys(kind for kind, _ in named)
        return render_citation((kind, [str(n) for of, n in named if of == kind]) for kind in kinds)

    return replace_written(text, replace)
