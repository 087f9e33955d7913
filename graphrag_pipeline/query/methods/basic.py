"""Basic search as steps: select text units by full text and vectors, then answer from them."""

from __future__ import annotations

from dataclasses import replace

from graphrag_pipeline.query.answers.answering import Answerer
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.methods.context_answer import ANSWER_FROM_CONTEXT
from graphrag_pipeline.query.methods.method import SearchMethod, SearchStep, count_records
from graphrag_pipeline.query.methods.state import SearchState
from graphrag_pipeline.query.search.basic import select_basic


def _select(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    found = select_basic(index, state.query.question, state.query.settings)
    reranked = {"reranked": found.reranked.to_dict()} if found.reranked else {}
    return replace(state, context=found.context, selection={**state.selection, **reranked})


METHOD = SearchMethod(
    name="basic",
    description="Basic search: full text and vectors over text units, no graph.",
    steps=(
        SearchStep(
            "select_basic_context",
            "Select text units by full text and vectors.",
            _select,
            lambda state: count_records(state.read),
        ),
        ANSWER_FROM_CONTEXT,
    ),
)
