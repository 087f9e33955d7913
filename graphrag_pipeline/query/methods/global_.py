"""Global search as steps: rate community reports, map those that are kept to points, reduce the points to one answer.

Where filters leave no report to read, the texts themselves are read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graphrag_pipeline.query.answers.answering import Answerer
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.methods.method import SearchMethod, SearchStep, as_text
from graphrag_pipeline.query.methods.state import SearchState
from graphrag_pipeline.query.results import Answer, Context
from graphrag_pipeline.query.search.basic import read_within
from graphrag_pipeline.query.search.community_selection import Selection, rate_reports, select_global_context
from graphrag_pipeline.query.search.lazy import read_overview


def _rate(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    query = state.query
    selection = rate_reports(index, query.question, query.settings)
    context = select_global_context(index, selection)
    if are_texts_read(index, selection):
        context = _read_texts(index, query.question, selection, query.settings.max_context_tokens)
        used = {**selection.options_used, "filtered_texts": {"text_units": len(context.text_units)}}
        selection = replace(selection, options_used=used)
    return replace(state, found=selection, context=context, selection={**state.selection, **selection.account()})


def _read_texts(index: IndexReader, question: str, selection: Selection, max_tokens: int) -> Context:
    read = read_overview if selection.is_overview else read_within
    return read(index, question, max_tokens)


def _map(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    mapped = answerer.map_reports(state.query.question, state.found, state.query.settings)
    return replace(state, mapped=mapped, selection={**state.selection, **mapped.details()})


def _reduce(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
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


def _account(state: SearchState) -> dict[str, Any]:
    return {**state.found.account(), **state.mapped.details()}


METHOD = SearchMethod(
    name="global",
    description="Global search: community reports rated, mapped and reduced.",
    steps=(
        SearchStep(
            "rate_reports",
            "Rate community reports against the question and keep those that matter.",
            _rate,
            lambda state: as_text(state.found.account()),
        ),
        SearchStep(
            "map_points",
            "Map the kept reports to scored points.",
            _map,
            lambda state: state.mapped.details(),
        ),
        SearchStep("reduce_points", "Reduce the points to one answer, each statement cited.", _reduce, _account),
    ),
    needs=("community_reports",),
    context_share=0.5,
)
