"""Lazy search as steps: test text units for relevance, map those that are relevant to points, answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graphrag_pipeline.query.answers.answering import Answerer
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.methods.method import SearchMethod, SearchStep, as_text
from graphrag_pipeline.query.methods.state import SearchState
from graphrag_pipeline.query.search.lazy import (
    LazySelection,
    find_relevant,
    needs_no_test,
    select_lazy_context,
    select_overview,
)


def _find(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    question, settings = state.query.question, state.query.settings
    if needs_no_test(index, question):
        return take_relevant(index, state, select_overview(index, question, settings))
    subqueries = answerer.split_question(question, settings.max_subqueries)
    return take_relevant(index, state, find_relevant(index, question, subqueries, settings))


def take_relevant(index: IndexReader, state: SearchState, selection: LazySelection) -> SearchState:
    """Return the state after the first step, with the text units that passed their tests."""
    context = select_lazy_context(index, selection, state.query.settings.max_context_tokens)
    return replace(state, found=selection, context=context, selection={**state.selection, **selection.account()})


def _map(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    mapped = answerer.map_text_units(state.query.question, state.found, state.query.settings)
    return replace(state, mapped=mapped, selection={**state.selection, **mapped.details()})


def _answer(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    query = state.query
    answer = answerer.write_from_text_units(query.question, state.mapped, state.found, query.settings)
    return replace(state, answer=answer)


def _show_relevant(state: SearchState) -> dict[str, Any]:
    return as_text(state.found.account()) | {"tokens": state.read.n_tokens}


METHOD = SearchMethod(
    name="lazy",
    description="Lazy search: text units tested for relevance, best first; no reports needed.",
    steps=(
        SearchStep(
            "find_relevant_text_units",
            "Test text units for relevance, best first by community, within the budget.",
            _find,
            _show_relevant,
        ),
        SearchStep(
            "map_text_units",
            "Map the relevant text units to scored points, where they are too many to be read at once.",
            _map,
            lambda state: state.mapped.details(),
        ),
        SearchStep(
            "answer_lazily",
            "Write the answer from what is relevant, each statement cited.",
            _answer,
            lambda state: {**state.found.account(), **state.mapped.details()},
        ),
    ),
    budget_option="max_tokens",
    context_share=0.5,
)
