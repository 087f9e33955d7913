"""The search methods that read an index, as declared steps: local, global, basic, DRIFT and lazy.

Keep out: how a method searches (`search/`), and the choice between methods (`auto.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graphrag_pipeline.query.answers.answering import Answerer
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.methods.method import SearchMethod, SearchStep, as_text, count_records
from graphrag_pipeline.query.methods.state import SearchState
from graphrag_pipeline.query.question import is_overview
from graphrag_pipeline.query.rendering import ContextStyle
from graphrag_pipeline.query.results import Answer, Context
from graphrag_pipeline.query.search.basic import select_basic, select_within
from graphrag_pipeline.query.search.community_selection import Selection, rate_reports, select_global_context
from graphrag_pipeline.query.search.drift import DriftStep, find_primer, follow_up, read_locally
from graphrag_pipeline.query.search.lazy import (
    LazySelection,
    find_relevant,
    needs_no_test,
    read_overview,
    select_lazy_context,
    select_overview,
)
from graphrag_pipeline.query.search.local import select_with_candidates
from graphrag_pipeline.query.understanding.entity_matching import unknown_names
from graphrag_pipeline.settings.settings import LocalSearchSettings


def _answer_from_context(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    settings = state.query.settings
    local = settings if isinstance(settings, LocalSearchSettings) else None
    return replace(state, answer=answerer.write_from_context(state.query.question, state.read, local))


ANSWER_FROM_CONTEXT = SearchStep(
    "answer_question",
    "Write the answer from the context, each statement cited.",
    _answer_from_context,
    lambda state: count_records(state.read),
)


# ---------------------------------------------------------------------------------------------------------------- local


def _select_local(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    settings: LocalSearchSettings = state.query.settings
    found = select_with_candidates(index, state.query.question, settings)
    style = ContextStyle.of_settings(settings).to_selection()
    selection: dict[str, Any] = {**state.selection, "strategy": settings.strategy, **style}
    selection |= {"excerpts": len(found.context.excerpts), "unheard": list(found.unheard)}
    selection |= {"reranked": found.reranked.to_dict()} if found.reranked else {}
    selection |= {"keywords": found.keywords.to_dict()} if found.keywords else {}
    if unknown := unknown_names(index, (*settings.include_entity_names, *settings.exclude_entity_names)):
        selection["unknown_entity_names"] = unknown
    return replace(state, context=found.context, candidates=found.candidates, selection=selection)


def _show_local(state: SearchState) -> dict[str, Any]:
    unheard: list[str] = state.selection.get("unheard", [])
    return {
        **count_records(state.read),
        "excerpts": state.selection.get("excerpts", 0),
        "unheard": len(unheard),
        "unheard_entities": ", ".join(unheard),
    }


SELECT_CONTEXT = SearchStep(
    "select_local_context",
    "Match entities and select the records and text units around them.",
    _select_local,
    _show_local,
)
_LOCAL = SearchMethod(
    name="local",
    description="Local search: entities near the question and what surrounds them.",
    steps=(SELECT_CONTEXT, ANSWER_FROM_CONTEXT),
    needs=("entities",),
)


# ---------------------------------------------------------------------------------------------------------------- basic


def _select_basic(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    found = select_basic(index, state.query.question, state.query.settings)
    reranked = {"reranked": found.reranked.to_dict()} if found.reranked else {}
    return replace(state, context=found.context, selection={**state.selection, **reranked})


_BASIC = SearchMethod(
    name="basic",
    description="Basic search: full text and vectors over text units, no graph.",
    steps=(
        SearchStep(
            "select_basic_context",
            "Select text units by full text and vectors.",
            _select_basic,
            lambda state: count_records(state.read),
        ),
        ANSWER_FROM_CONTEXT,
    ),
)


# --------------------------------------------------------------------------------------------------------------- global


def _rate_reports(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    query = state.query
    selection = rate_reports(index, query.question, query.settings)
    context = select_global_context(index, selection)
    if are_texts_read(index, selection):
        context = _read_texts(index, query.question, selection, query.settings.max_context_tokens)
        used = {**selection.options_used, "filtered_texts": {"text_units": len(context.text_units)}}
        selection = replace(selection, options_used=used)
    return replace(state, found=selection, context=context, selection={**state.selection, **selection.account()})


def _read_texts(index: IndexReader, question: str, selection: Selection, max_tokens: int) -> Context:
    if selection.is_overview:
        return read_overview(index, question, max_tokens)
    return select_within(index, question, max_tokens).context


def _map_reports(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    mapped = answerer.map_reports(state.query.question, state.found, state.query.settings)
    return replace(state, mapped=mapped, selection={**state.selection, **mapped.details()})


def _reduce_points(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    query = state.query
    if are_texts_read(index, state.found):
        answer = note_missing_reports(index, answerer.write_from_context(query.question, state.read))
    else:
        answer = answerer.write_from_reports(query.question, state.mapped, state.found, query.settings)
    context = replace(state.read, text_units=(*state.read.text_units, *answer.text_units))
    return replace(state, context=context, answer=answer)


def are_texts_read(index: IndexReader, selection: Selection) -> bool:
    """Whether the texts are read because filters leave no report to read."""
    return index.document_mask is not None and not index.nothing_to_read and not selection.kept


def note_missing_reports(index: IndexReader, answer: Answer) -> Answer:
    """Return an answer with a line under it that says why the texts were read."""
    filters = " and ".join(index.document_mask.filters) if index.document_mask else ""
    n_left = int(index.row_mask("community_reports").sum())
    why = (
        "No community report is" if not n_left else f"Only {n_left} community report{'s are' if n_left > 1 else ' is'}"
    )
    return replace(answer, text=f"{answer.text}\n\n{why} wholly within {filters}: the texts themselves were read.")


def _show_points(state: SearchState) -> dict[str, Any]:
    return {**state.found.account(), **state.mapped.details()}


_GLOBAL = SearchMethod(
    name="global",
    description="Global search: community reports rated, mapped and reduced.",
    steps=(
        SearchStep(
            "rate_reports",
            "Rate community reports against the question and keep those that matter.",
            _rate_reports,
            lambda state: as_text(state.found.account()),
        ),
        SearchStep(
            "map_points",
            "Map the kept reports to scored points.",
            _map_reports,
            lambda state: state.mapped.details(),
        ),
        SearchStep(
            "reduce_points", "Reduce the points to one answer, each statement cited.", _reduce_points, _show_points
        ),
    ),
    needs=("community_reports",),
    context_share=0.5,
)


# ---------------------------------------------------------------------------------------------------------------- drift


def _start_drift(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    question, settings = state.query.question, state.query.settings
    [vector] = index.embed([answerer.imagine_answer(question)])
    selection = find_primer(index, question, vector, settings)
    return replace(state, found=answerer.follower(question, settings).start(selection))


def _follow_drift(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    """Where all steps fail, the last step is what the embedded engine reads instead."""
    question, settings = state.query.question, state.query.settings
    drift = follow_up(state.found, answerer.follower(question, settings), settings)
    if drift.has_failed:
        reason = drift.failures[0] if drift.failures else "no step was made"
        read = read_locally(index, question, settings.max_context_tokens)
        drift = replace(drift, steps=(*drift.steps, DriftStep(question, 0, read, failure=reason)))
    return replace(state, found=drift, context=drift.context, selection={**state.selection, **drift.account()})


def _answer_by_drift(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    question, drift = state.query.question, state.found
    answer = answerer.write_from_steps(question, drift, state.query.settings)
    if is_overview(question) and are_texts_read(index, drift.selection):
        answer = note_missing_reports(index, answer)
    return replace(state, answer=answer)


def _show_primer(state: SearchState) -> dict[str, Any]:
    primer = state.found
    return {
        "reports": len(primer.selection.kept),
        "open": [question for step in primer.steps for question in step.follow_ups],
    }


_DRIFT = SearchMethod(
    name="drift",
    description="DRIFT search: from the nearest reports, by follow-up questions, into the graph.",
    steps=(
        SearchStep(
            "start_drift",
            "Read the reports nearest to the question and find what they leave open.",
            _start_drift,
            _show_primer,
        ),
        SearchStep(
            "follow_drift",
            "Ask follow-up questions, round by round.",
            _follow_drift,
            lambda state: state.found.account(),
        ),
        SearchStep(
            "answer_by_drift",
            "Write one answer from all steps, each statement cited.",
            _answer_by_drift,
            lambda state: state.found.account(),
        ),
    ),
    needs=("community_reports",),
    context_share=0.25,
)


# ----------------------------------------------------------------------------------------------------------------- lazy


def _find_relevant(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    question, settings = state.query.question, state.query.settings
    if needs_no_test(index, question):
        return take_relevant(index, state, select_overview(index, question, settings))
    subqueries = answerer.split_question(question, settings.max_subqueries)
    return take_relevant(index, state, find_relevant(index, question, subqueries, settings))


def take_relevant(index: IndexReader, state: SearchState, selection: LazySelection) -> SearchState:
    """Return the state after the first step, with the text units that passed their tests."""
    context = select_lazy_context(index, selection, state.query.settings.max_context_tokens)
    return replace(state, found=selection, context=context, selection={**state.selection, **selection.account()})


def _map_text_units(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    mapped = answerer.map_text_units(state.query.question, state.found, state.query.settings)
    return replace(state, mapped=mapped, selection={**state.selection, **mapped.details()})


def _answer_lazily(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    query = state.query
    answer = answerer.write_from_text_units(query.question, state.mapped, state.found, query.settings)
    return replace(state, answer=answer)


def _show_relevant(state: SearchState) -> dict[str, Any]:
    return as_text(state.found.account()) | {"tokens": state.read.n_tokens}


_LAZY = SearchMethod(
    name="lazy",
    description="Lazy search: text units tested for relevance, best first; no reports needed.",
    steps=(
        SearchStep(
            "find_relevant_text_units",
            "Test text units for relevance, best first by community, within the budget.",
            _find_relevant,
            _show_relevant,
        ),
        SearchStep(
            "map_text_units",
            "Map the relevant text units to scored points, where they are too many to be read at once.",
            _map_text_units,
            lambda state: state.mapped.details(),
        ),
        SearchStep(
            "answer_lazily",
            "Write the answer from what is relevant, each statement cited.",
            _answer_lazily,
            lambda state: {**state.found.account(), **state.mapped.details()},
        ),
    ),
    budget_option="max_tokens",
    context_share=0.5,
)

CHOOSABLE = {method.name: method for method in (_LOCAL, _GLOBAL, _BASIC, _DRIFT, _LAZY)}
"""Method by name, in the order of lists for people; `auto` may pick each."""
