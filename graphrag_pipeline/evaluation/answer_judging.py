"""A model judges answers against their questions and sources; what it costs is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from graphrag_pipeline.models.metering import Meter, MeteredModel
from graphrag_pipeline.models.ports import ChatReply, ChatRequest, Failure, ReplyFormatError
from graphrag_pipeline.models.prompts import AUTO
from graphrag_pipeline.models.reply_json import clean_text, json_schema_format, list_limit, parse_reply
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.model_requests import as_data, open_question, request_all
from graphrag_pipeline.query.rendering import render_context
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.text.tokens import count_tokens_each

if TYPE_CHECKING:
    from graphrag_pipeline.models.ports import StreamingChatModel

SECOND_ANSWER = 1_000
"""Added to the repeat number of requests; ratings of one question are repeated at most 9 times."""


class MeteredIndex(GraphIndex):
    """The same snapshot and models as another index, metered.

    Args:
        index: an index that was opened with a root.
        repeat: added to the repeat number of every request.
    """

    def __init__(self, index: GraphIndex, repeat: int = 0) -> None:
        super().__init__(index.snapshot, index.settings, index.embedder, index._root)
        self._columns = index._columns
        self.meter = Meter()
        self._repeat = repeat

    def chat_model(self, section: str) -> StreamingChatModel:
        """Return the chat model of a settings section, metered."""
        return MeteredModel(super().chat_model(section), self.meter, self._repeat)


SECTION = "evaluation"
JUDGING_PROMPTS = ("split_statements", "check_statements")
_PARTS = ("\n\n", "\n", " ", "")
"""Places where a long context is cut, best first."""


# The docstrings of these models are descriptions in the schema that is sent; request keys cover them.


class StatementsReply(BaseModel):
    """The schema that the model is asked for."""

    statements: list[str]
    declines: bool


class StatementCheck(BaseModel):
    """One checked statement of the schema that the model is asked for."""

    number: int
    reason: str
    is_supported: bool


class ChecksReply(BaseModel):
    """The schema that the model is asked for."""

    checks: list[StatementCheck]


STATEMENTS_FORMAT = json_schema_format(StatementsReply, "statements")
STATEMENTS_LIMITS = {"statements": list_limit(200, 300)}
CHECKS_FORMAT = json_schema_format(ChecksReply, "checks")


@dataclass(frozen=True)
class JudgedAnswer:
    """An answer to judge.

    Attributes:
        references: accepted answers, the fullest first; () for an unanswerable question.
        body: the answer as plain text; "" if it declines.
        context: the records that the answer was written from.
    """

    question: str
    references: tuple[str, ...]
    body: str
    context: Context


@dataclass(frozen=True)
class Judgement:
    """Shares of statements, 0-1; null where a judgement failed or does not apply.

    Attributes:
        declines: whether the judge found that the answer only says that it has none.
        failures: judgements without a usable reply: "covered_claims", "precision", "faithfulness", "declines".
    """

    covered_claims: float | None = None
    precision: float | None = None
    faithfulness: float | None = None
    declines: bool = False
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Check:
    """One judgement to make: statements of one text, checked against the pieces of another."""

    figure: str
    statements: tuple[str, ...]
    pieces: tuple[str, ...]


Splits = Mapping[tuple[str, str], StatementsReply | None]
"""(question, text) -> its statements; None without a usable reply."""


def judge_answers(index: GraphIndex, answers: Sequence[JudgedAnswer]) -> list[Judgement]:
    """Judge answers: one round of requests splits texts into statements, a second one checks the statements.

    Raises:
        PipelineError: no call can be answered, or the budget of the root is spent.
    """
    splits = _split(index, answers)
    plans = [_plan(one, splits, index.settings.evaluation.max_context_tokens) for one in answers]
    keys = [(place, check, piece) for place, plan in enumerate(plans) for check in plan for piece in check.pieces]
    requests = [_request_checks(index, answers[place].question, check, piece) for place, check, piece in keys]
    checked: dict[tuple[int, str], list[list[bool] | None]] = {}
    replies = request_all(index, SECTION, requests)
    for (place, check, _), value in zip(keys, _values(replies), strict=True):
        checked.setdefault((place, check.figure), []).append(value)
    return [
        _conclude(one, splits, {check.figure: _share(check, checked.get((place, check.figure), [])) for check in plan})
        for place, (one, plan) in enumerate(zip(answers, plans, strict=True))
    ]


def _values(replies: Sequence[ChatReply[Any] | Failure]) -> list[Any | None]:
    return [None if isinstance(reply, Failure) else reply.value for reply in replies]


def _split(index: GraphIndex, answers: Sequence[JudgedAnswer]) -> Splits:
    """Return the statements of the first reference answer and of the answer, each text requested once."""
    references = dict.fromkeys((one.question, one.references[0]) for one in answers if one.references)
    bodies = dict.fromkeys((one.question, one.body) for one in answers if one.body)
    texts = list(references | bodies)
    requests = [_request_statements(index, *text, is_reference=text in references) for text in texts]
    replies = request_all(index, SECTION, requests)
    return dict(zip(texts, _values(replies), strict=True))


def _plan(answer: JudgedAnswer, splits: Splits, max_tokens: int) -> list[_Check]:
    """Return the checks of one answer; an answer that declines needs none."""
    said = splits.get((answer.question, answer.body))
    if not answer.body or (said and said.declines):
        return []
    checks = []
    wanted = splits.get((answer.question, answer.references[0])) if answer.references else None
    if wanted:
        checks.append(_Check("covered_claims", tuple(wanted.statements), cut_text(answer.body, max_tokens)))
    if said and said.statements:
        statements, records = tuple(said.statements), cut_text(render_context(answer.context), max_tokens)
        if answer.references:
            checks.append(_Check("precision", statements, cut_text("\n".join(answer.references), max_tokens)))
        checks.append(_Check("faithfulness", statements, records))
    return checks


def _share(check: _Check, replies: Sequence[list[bool] | None]) -> float | None:
    """Return the share of the statements that a piece supports; None if a failed reply might change it."""
    supported = [any(reply[i] for reply in replies if reply) for i in range(len(check.statements))]
    if None in replies and not all(supported):
        return None
    return sum(supported) / len(supported)


def _conclude(answer: JudgedAnswer, splits: Splits, shares: Mapping[str, float | None]) -> Judgement:
    said = splits.get((answer.question, answer.body))
    if not answer.body or (said and said.declines):
        return Judgement(covered_claims=0.0 if answer.references else None, declines=bool(said))
    failed = {figure for figure, share in shares.items() if share is None}
    if answer.references and "covered_claims" not in shares:
        failed.add("covered_claims")
    if said is None:
        failed |= {"faithfulness", "precision" if answer.references else "declines"}
    covered, precision, faithful = (shares.get(figure) for figure in ("covered_claims", "precision", "faithfulness"))
    return Judgement(covered, precision, faithful, failures=tuple(sorted(failed)))


# ------------------------------------------------------------------------------------------------------------- requests


def _request_statements(
    index: GraphIndex, question: str, text: str, is_reference: bool
) -> ChatRequest[StatementsReply]:
    messages = open_question(index.prompt("split_statements"), AUTO, question, text=as_data(text))
    read: Callable[[str], StatementsReply] = read_reference if is_reference else read_statements
    return ChatRequest(f"statements: {question[:60]}", messages, read, STATEMENTS_FORMAT, limits=STATEMENTS_LIMITS)


def read_statements(reply: str) -> StatementsReply:
    """Read the statements of an answer, cleaned and each once; none if the answer declines.

    Raises:
        ReplyFormatError: the reply does not fit the schema.
    """
    found = parse_reply(reply, StatementsReply)
    statements = dict.fromkeys(" ".join(clean_text(text).split()) for text in found.statements)
    kept = [] if found.declines else [text for text in statements if text]
    return StatementsReply(statements=kept, declines=found.declines)


def read_reference(reply: str) -> StatementsReply:
    """Read the statements of a reference answer, at least one.

    Raises:
        ReplyFormatError: the reply does not fit the schema, or has no statement.
    """
    found = read_statements(reply)
    if not found.statements:
        raise ReplyFormatError("the reference answer has no statement; list at least one, with `declines` false")
    return found


def _request_checks(index: GraphIndex, question: str, check: _Check, piece: str) -> ChatRequest[list[bool]]:
    listed = "\n".join(f"{number}. {text}" for number, text in enumerate(check.statements, start=1))
    prompt = index.prompt("check_statements")
    messages = open_question(prompt, AUTO, question, statements=as_data(listed), text=as_data(piece))
    read = partial(read_checks, n=len(check.statements))
    n = len(check.statements)
    limits: dict[str, dict[str, Any]] = {
        "checks": {"maxItems": n},
        "number": {"enum": list(range(1, n + 1))},
        "reason": {"maxLength": 600},
    }
    return ChatRequest(f"{check.figure}: {question[:60]}", messages, read, CHECKS_FORMAT, limits=limits)


def read_checks(reply: str, n: int) -> list[bool]:
    """Read whether each of n statements is supported.

    Raises:
        ReplyFormatError: the reply does not fit the schema, or a statement is missing.
    """
    found = {check.number: check.is_supported for check in parse_reply(reply, ChecksReply).checks}
    missing = [str(number) for number in range(1, n + 1) if number not in found]
    if missing:
        raise ReplyFormatError(f"no check of statement {', '.join(missing)}; check each of the {n} statements")
    return [found[number] for number in range(1, n + 1)]


def cut_text(text: str, max_tokens: int) -> tuple[str, ...]:
    """Cut a text into consecutive pieces of about `max_tokens` tokens, at blank lines, else lines, else words."""
    return tuple(piece.strip() for piece in _cut(text, max_tokens, _PARTS) if piece.strip())


def _cut(text: str, max_tokens: int, separators: Sequence[str]) -> Iterator[str]:
    separator, *finer = separators
    parts = text.split(separator) if separator else list(text)
    kept: list[str] = []
    n_kept = 0
    for part, n in zip(parts, count_tokens_each(parts), strict=True):
        if kept and n_kept + n + 1 > max_tokens:
            yield separator.join(kept)
            kept, n_kept = [], 0
        if n > max_tokens and finer:
            yield from _cut(part, max_tokens, finer)
        else:
            kept.append(part)
            n_kept += n + 1
    if kept:
        yield separator.join(kept)
