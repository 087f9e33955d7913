"""Lazy search by a chat model: a question split into subqueries, and text units mapped to points.

A failed reply affects only its part: without subqueries the question is searched for alone, and a batch of text units
whose points fail is counted with its reason. Keep out: rating text units (`search/model_unit_rating.py`).
"""

from __future__ import annotations

from functools import partial

from pydantic import BaseModel

from graphrag_pipeline.engines.model.answers.points import map_contexts
from graphrag_pipeline.models.ports import ChatRequest, Failure, ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.reply_json import read_json
from graphrag_pipeline.models.structured import json_schema_format, list_limit
from graphrag_pipeline.query.answers.answering import MappedPoints
from graphrag_pipeline.query.context import pack_batches, row_costs
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.model_requests import MAX_QUESTION_CHARS, open_question, read_questions, request_all
from graphrag_pipeline.query.results import Context, TextUnitRecord
from graphrag_pipeline.query.search.global_ import NO_REPORT
from graphrag_pipeline.query.search.lazy import (
    LazySelection,
    select_lazy_context,
)
from graphrag_pipeline.query.token_budget import answer_cost
from graphrag_pipeline.settings.settings import LazySearchSettings


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
