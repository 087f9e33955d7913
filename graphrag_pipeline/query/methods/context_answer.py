"""The step that local and basic search end with: an answer from the context alone."""

from __future__ import annotations

from dataclasses import replace

from graphrag_pipeline.query.answers.answering import Answerer
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.methods.method import SearchStep, count_records
from graphrag_pipeline.query.methods.state import SearchState
from graphrag_pipeline.settings.settings import LocalSearchSettings


def _answer(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    settings = state.query.settings
    local = settings if isinstance(settings, LocalSearchSettings) else None
    return replace(state, answer=answerer.write_from_context(state.query.question, state.read, local))


ANSWER_FROM_CONTEXT = SearchStep(
    "answer_question",
    "Write the answer from the context, each statement cited.",
    _answer,
    lambda state: count_records(state.read),
)
