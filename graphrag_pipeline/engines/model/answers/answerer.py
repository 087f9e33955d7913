"""The answerer by a chat model; the embedded engine replaces answers that the model does not give.

Lazy search by a chat model: a question split into subqueries, and text units mapped to points.

A failed reply affects only its part: without subqueries the question is searched for alone, and a batch of text units
whose points fail is counted with its reason.

Keep out: prompts and replies (`writing.py`, `points.py`, `drift.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pydantic import BaseModel

from graphrag_pipeline.engines.model.answers.drift import ModelFollower, imagine_answer, points_of
from graphrag_pipeline.engines.model.answers.points import map_contexts, map_reports
from graphrag_pipeline.engines.model.answers.writing import AnswerWriter
from graphrag_pipeline.models.ports import CallFailedError, ChatRequest, Failure, ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.reply_json import json_schema_format, list_limit, read_json
from graphrag_pipeline.ports import load_port
from graphrag_pipeline.query.answers.answering import Answerer, MappedPoints
from graphrag_pipeline.query.answers.notes import is_uncited, replaced_answer, stand_beside
from graphrag_pipeline.query.context import pack_batches, row_costs
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.model_requests import MAX_QUESTION_CHARS, open_question, read_questions, request_all
from graphrag_pipeline.query.results import Answer, Context, TextUnitRecord, Unread
from graphrag_pipeline.query.search.community_selection import Selection, rate_without_model
from graphrag_pipeline.query.search.drift import Drift
from graphrag_pipeline.query.search.global_ import NO_REPORT, map_points
from graphrag_pipeline.query.search.lazy import LazySelection, select_lazy_context
from graphrag_pipeline.query.streams import OnToken
from graphrag_pipeline.query.token_budget import answer_cost
from graphrag_pipeline.settings.settings import (
    DriftSearchSettings,
    GlobalSearchSettings,
    LazySearchSettings,
    LocalSearchSettings,
)


class SubqueriesReply(BaseModel):
    """The schema that the model is asked for."""

    subqueries: list[str]


SUBQUERIES_FORMAT = json_schema_format(SubqueriesReply, "subqueries")


def split_question(index: IndexReader, question: str, max_subqueries: int) -> tuple[str, ...]:
    """Return the question and the simpler ones that a model splits it into; if it gives none, the question alone.

    Raises:
        PipelineError: no call can be answered, or the budget of the root is spent.
    """
    if max_subqueries == 1:
        return (question,)
    prompt, language = index.prompt("lazy_subqueries"), index.settings.answers.language
    messages = open_question(prompt, language, question, max_subqueries=str(max_subqueries))
    parse = partial(read_subqueries, echoes=prompt.echoes)
    limits = {"subqueries": list_limit(max_subqueries, MAX_QUESTION_CHARS)}
    request = ChatRequest("subqueries", messages, parse, SUBQUERIES_FORMAT, limits=limits)
    [reply] = request_all(index, "answers", [request])
    found = () if isinstance(reply, Failure) else reply.value[:max_subqueries]
    return tuple(dict.fromkeys((question, *found)))


def read_subqueries(reply: str, echoes: PromptEchoes | None = None) -> tuple[str, ...]:
    """Return the questions in a reply, each once; one that is not a text, too long, or the prompt's is left out.

    Raises:
        ReplyFormatError: the reply has no list of questions.
    """
    for value in read_json(reply):
        listed = value.get("subqueries") if isinstance(value, dict) else value
        if isinstance(listed, list):
            return read_questions(listed, echoes)
    raise ReplyFormatError(f"no JSON object with a list of subqueries; the reply starts {reply[:80]!r}")


# ------------------------------------------------------------------------------------------------------------------ map


def estimate_map(index: IndexReader, selection: LazySelection, settings: LazySearchSettings) -> int:
    """Return the tokens of the calls that map the relevant text units, and of the answer from their points."""
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
    """Request the points of the relevant text units, batch by batch, best first.

    Raises:
        PipelineError: no call can be answered, or the budget of the root is spent.
    """
    parts = [("text units", Context(text_units=tuple(batch))) for batch in _batch(index, selection, settings)]
    limit = settings.max_answer_tokens
    return map_contexts(index, question, "lazy_search_map", parts, limit, lambda context, text: NO_REPORT)


class ModelAnswerer:
    """Sends requests to the chat model of `answers`; a `query.answers.answering.Answerer`.

    Args:
        on_token: gets the model's text as it comes.
    """

    def __init__(self, index: IndexReader, on_token: OnToken | None = None) -> None:
        self._index = index
        self._writer = AnswerWriter(index, on_token)
        self._extractive: Answerer = load_port("answerer")(index)

    def write_from_context(self, question: str, context: Context, local: LocalSearchSettings | None = None) -> Answer:
        """Answer from a context; the embedded engine answers from an empty one."""
        if context.is_empty:
            return self._extractive.write_from_context(question, context, local)
        return self._write_or_replace(
            lambda: self._writer.write_from_context(question, context, local),
            lambda: self._extractive.write_from_context(question, context, local),
        )

    # ------------------------------------------------------------------------------------------------------- global

    def map_reports(self, question: str, selection: Selection, settings: GlobalSearchSettings) -> MappedPoints:
        """Request the points of the kept reports, batch by batch."""
        return map_reports(self._index, question, selection, settings)

    def write_from_reports(
        self, question: str, mapped: MappedPoints, selection: Selection, settings: GlobalSearchSettings
    ) -> Answer:
        """Answer from the points of the kept reports."""
        if selection.is_irrelevant:
            return Answer(f"Not in the index: {selection.describe()}.", engine="model")
        if not selection.kept and not selection.is_unpaid:
            return self._extractive.write_from_reports(question, mapped, selection, settings)
        looked = _describe_reading(mapped, selection)
        unread = mapped.unread("batches of reports") or self._find_unpaid(selection)
        if not mapped.points and not unread:
            return _not_in_index(looked)

        def write_extractive() -> Answer:
            is_unpaid = selection.n_unpaid > 0
            read = rate_without_model(self._index, question, settings) if is_unpaid else selection
            points = MappedPoints(map_points(self._index, question, read))
            return self._extractive.write_from_reports(question, points, read, settings)

        if not mapped.points and unread:
            return replaced_answer(write_extractive(), f"{_explain(unread)}{_count_rated(selection)}", unread)
        return self._write_or_replace(
            lambda: self._writer.write_from_points(question, mapped.points, settings.max_answer_tokens, looked, unread),
            write_extractive,
            unread,
        )

    def _find_unpaid(self, selection: Selection) -> Unread | None:
        """Return how many reports the token budget did not let the model rate; None if it rated all."""
        n_unpaid, n_rated = selection.n_unpaid, len(selection.rated)
        reasons = (self._index.calls.budget.refusal,)
        return Unread("community reports", n_unpaid, n_rated, reasons, "rated by the model") if n_unpaid else None

    # -------------------------------------------------------------------------------------------------------- drift

    def imagine_answer(self, question: str) -> str:
        """Request the text that a report might have in answer to the question."""
        return imagine_answer(self._index, question)

    def follower(self, question: str, settings: DriftSearchSettings) -> ModelFollower:
        """Request an answer and follow-up questions at each step."""
        return ModelFollower(self._index, question, settings)

    def write_from_steps(self, question: str, drift: Drift, settings: DriftSearchSettings) -> Answer:
        """Answer from the answers of the steps."""
        points, looked = points_of(drift.steps), f"looked at {drift.describe()}"
        failed = [step for step in drift.steps if step.failure]
        unread = None
        if failed:
            unread = Unread("questions", len(failed), len(drift.steps), tuple(drift.failures), "answered")
        if not points and not unread:
            return _not_in_index(looked)

        def write_extractive() -> Answer:
            return self._extractive.write_from_steps(question, drift, settings)

        if not points and unread:
            return replaced_answer(write_extractive(), _explain(unread), unread)
        return self._write_or_replace(
            lambda: self._writer.write_from_points(question, points, settings.max_answer_tokens, looked, unread),
            write_extractive,
            unread,
        )

    # --------------------------------------------------------------------------------------------------------- lazy

    def split_question(self, question: str, max_subqueries: int) -> tuple[str, ...]:
        """Request simpler questions."""
        return split_question(self._index, question, max_subqueries)

    def map_text_units(self, question: str, selection: LazySelection, settings: LazySearchSettings) -> MappedPoints:
        """Request the points of the relevant text units, batch by batch."""
        read = self._read_text_units(selection, settings).text_units
        if len(read) == len(selection.relevant):
            return MappedPoints(())
        if read and not self._index.calls.budget.is_affordable(estimate_map(self._index, selection, settings)):
            return MappedPoints(())
        return map_text_units(self._index, question, selection, settings)

    def write_from_text_units(
        self, question: str, mapped: MappedPoints, selection: LazySelection, settings: LazySearchSettings
    ) -> Answer:
        """Answer from the points; if none were mapped, from the text units that fit a context."""
        context, looked = self._read_text_units(selection, settings), selection.describe()
        unread = mapped.unread("batches of text units")
        if not mapped.points and not unread and (context.is_empty or mapped.account):
            return _not_in_index(looked)

        def write_extractive() -> Answer:
            return self._extractive.write_from_text_units(question, MappedPoints(()), selection, settings)

        if unread and not mapped.points:
            return replaced_answer(write_extractive(), _explain(unread), unread)

        def write() -> Answer:
            limit = settings.max_answer_tokens
            if mapped.points:
                return self._writer.write_from_points(question, mapped.points, limit, looked, unread)
            return self._writer.write_from_context(question, context)

        return self._write_or_replace(write, write_extractive, unread)

    def _read_text_units(self, selection: LazySelection, settings: LazySearchSettings) -> Context:
        return select_lazy_context(self._index, selection, settings.max_context_tokens)

    def _write_or_replace(
        self, write: Callable[[], Answer], write_extractive: Callable[[], Answer], unread: Unread | None = None
    ) -> Answer:
        """Return the model's answer; if its call fails, the embedded engine's with the reason.

        If no statement of the model's answer has a citation, both stand side by side.
        """
        try:
            answer = write()
        except CallFailedError as error:
            return replaced_answer(write_extractive(), error.reason, unread or Unread("answers", 1, 1, (error.reason,)))
        return stand_beside(answer, write_extractive()) if is_uncited(answer) else answer


def _explain(unread: Unread) -> str:
    """Return why a model gave no answer: all calls failed, or those that did not found nothing."""
    reasons = "; ".join(unread.reasons)
    return reasons if unread.n_failed == unread.n_parts else f"nothing in the {unread.parts} that it read; {reasons}"


def _not_in_index(looked: str) -> Answer:
    return Answer(f"Not in the index: {looked}; none says anything about the question.", engine="model")


def _describe_reading(mapped: MappedPoints, selection: Selection) -> str:
    """Return a summary such as "12 community reports rated, 3 of them read in 1 batch"."""
    n_batches, n_failed = mapped.account.get("batches", 0), mapped.account.get("failed", 0)
    failed = f" ({n_failed} failed: {'; '.join(mapped.failures)})" if n_failed else ""
    batches = f"{n_batches} batch{'es' * (n_batches != 1)}{failed}"
    n_kept, n_rated = len(selection.kept), len(selection.rated)
    if selection.method == "static":
        return f"{n_kept} community reports read in {batches}"
    by_model = f" ({selection.rating['rated_by_model']} by the model)" if selection.n_unpaid else ""
    return f"{n_rated} community reports rated{by_model}, {n_kept} of them read in {batches}"


def _count_rated(selection: Selection) -> str:
    """Return how many reports the model itself rated, for a reason; "" if the token budget let it rate all."""
    if not selection.n_unpaid:
        return ""
    return f"; the model rated {selection.rating['rated_by_model']} of {len(selection.rated)} community reports"
