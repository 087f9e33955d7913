"""Steps of a search: in a row or one by one, with a value between them that pickles."""

from __future__ import annotations

import pickle

import pytest

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.index.running import prepare_query, run_search, run_step
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.query.methods.state import SearchRequest, SearchState
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.streams import Listener

QUESTION = "Who is Jacob Marley?"


@pytest.mark.parametrize("method", METHODS)
def test_steps_with_pickled_values_between_them_answer_as_a_search_does(carol: GraphIndex, method: str) -> None:
    state = SearchState(prepare_query(carol, SearchRequest(QUESTION, method)))
    for name in dict.fromkeys((method, state.query.method)):
        steps = list(METHODS[name].steps)
        while steps:
            state = pickle.loads(pickle.dumps(run_step(carol, steps.pop(0), state)))
            if not steps and state.answer is None:
                steps = list(METHODS[state.query.method].steps)
    result = carol.search(QUESTION, method)
    assert state.noted_answer.text == result.answer
    assert state.noted_answer.citations == result.citations
    assert state.read == result.context


@pytest.mark.parametrize("method", METHODS)
def test_a_search_for_the_context_stops_there(carol: GraphIndex, method: str) -> None:
    contexts: list[Context] = []
    query = prepare_query(carol, SearchRequest(QUESTION, method))
    state = run_search(carol, query, Listener(context_only=True, on_context=contexts.append))
    assert state.answer is None and contexts == [state.read]


def test_a_query_holds_the_filters_of_its_time(carol: GraphIndex) -> None:
    query = prepare_query(carol, SearchRequest("Who is Scrooge?", filters=("title~Stave",)))
    assert query.filters == ("title~Stave",) and query.question == query.user_question == "Who is Scrooge?"
    assert query.budget is None and query.snapshot == carol.snapshot.id
