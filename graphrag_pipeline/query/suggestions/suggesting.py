"""Suggesting what to ask next: the context of the conversation, then the engine that `answers` names.

Keep out: how either engine finds questions (`open_ends.py`, `by_model.py`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.ports import Failure
from graphrag_pipeline.query import records
from graphrag_pipeline.query.index_reader import IndexReader, QuestionCalls
from graphrag_pipeline.query.question import read_question
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.local import select_local_context
from graphrag_pipeline.query.suggestions.by_model import request_questions
from graphrag_pipeline.query.suggestions.open_ends import find_open_ends
from graphrag_pipeline.query.suggestions.suggested import MAX_QUESTIONS, SuggestedQuestions, without_asked
from graphrag_pipeline.query.understanding.conversation import Turn
from graphrag_pipeline.query.usage import QueryUsage

N_TOP = 20
"""Reports, and entities, that stand for an index that nothing was asked about yet."""


def suggest_questions(
    index: IndexReader, question: str = "", history: Sequence[Turn] = (), n: int = 5
) -> SuggestedQuestions:
    """Return at most `n` questions that a user might ask next; none repeats one that was asked.

    Args:
        question: the latest question; "" is the latest of the history.
        history: turns before it, oldest first.

    Raises:
        PipelineError: `n` is not 1 to `MAX_QUESTIONS`; no model call can be answered, or the root's budget is spent.
    """
    if not 1 <= n <= MAX_QUESTIONS:
        raise PipelineError(f"{n} suggested questions: ask for 1 to {MAX_QUESTIONS}")
    started = time.perf_counter()
    asked = [content for role, content in history if role == "user" and content.strip()]
    asked = [read_question(text) for text in [*asked, *filter(str.strip, [question])]]
    counted = index.for_question(QuestionCalls(scope=index.calls.scope))
    context = Context() if counted.nothing_to_read else _choose_context(counted, asked, history, bool(question.strip()))
    asks_model = index.settings.answers.uses_model and not context.is_empty
    reply = request_questions(counted, asked, context, n) if asks_model else None
    is_by_model = isinstance(reply, list)
    found = reply if isinstance(reply, list) else find_open_ends(counted, asked, context)
    return SuggestedQuestions(
        questions=without_asked(found, asked, n),
        engine="model" if is_by_model else "embedded",
        failure=reply.reason if isinstance(reply, Failure) else "",
        snapshot=index.snapshot.id,
        seconds=time.perf_counter() - started,
        usage=QueryUsage(counted.calls.account.by_model(index.settings)),
    )


def _choose_context(index: IndexReader, asked: Sequence[str], history: Sequence[Turn], is_given: bool) -> Context:
    """Return what a local search of the latest question reads; before any question, the top of the index."""
    if not asked:
        return _read_top(index)
    turns = list(history)
    if not is_given:  # the latest question is in the history: what was said before it is
        turns = turns[: max(place for place, (role, text) in enumerate(turns) if role == "user" and text.strip())]
    before = [turn for turn in turns if turn[1].strip()]
    settings = index.settings.search("local", conversation_history=tuple(before))
    return select_local_context(index, asked[-1], settings)


def _read_top(index: IndexReader) -> Context:
    """Return the reports of the widest communities by rank, and the entities with the most relationships."""
    reports = _highest(index, "community_reports", "rank", index.column("community_reports", "level") == 0)
    entities = _highest(index, "entities", "degree")
    return Context(
        entities=records.read_entities(index, entities, np.zeros(len(entities)), ["top"] * len(entities)),
        reports=records.read_reports(index, reports, np.zeros(len(reports))),
    )


def _highest(index: IndexReader, table: str, column: str, among: np.ndarray | None = None) -> np.ndarray:
    """Return the readable rows with the highest values of a column, at most `N_TOP`; equal ones in file order."""
    mask = index.row_mask(table) if among is None else index.row_mask(table) & among
    rows = np.flatnonzero(mask)
    order = np.argsort(-index.column(table, column)[rows], kind="stable")
    return rows[order][:N_TOP]
