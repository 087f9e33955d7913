"""Local search as steps: select a context around the entities of the question, then answer from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graphrag_pipeline.query.answers.answering import Answerer
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.methods.context_answer import ANSWER_FROM_CONTEXT
from graphrag_pipeline.query.methods.method import SearchMethod, SearchStep, count_records
from graphrag_pipeline.query.methods.state import SearchState
from graphrag_pipeline.query.rendering import ContextStyle
from graphrag_pipeline.query.search.local import select_with_candidates
from graphrag_pipeline.query.understanding.entity_matching import unknown_names
from graphrag_pipeline.settings.settings import LocalSearchSettings


def _select(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
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


def _show(state: SearchState) -> dict[str, Any]:
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
    _select,
    _show,
)
METHOD = SearchMethod(
    name="local",
    description="Local search: entities near the question and what surrounds them.",
    steps=(SELECT_CONTEXT, ANSWER_FROM_CONTEXT),
    needs=("entities",),
)
