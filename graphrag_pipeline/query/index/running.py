"""Running a search: a question is prepared once, then goes through the steps of its method.

The command line, Python, batches and evaluation run the steps in a row (`run_search`, `run_steps`); Dagster's query
jobs run each as an op (`run_step`). Keep out: which steps a method has.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from graphrag_pipeline.query.answers.answering import choose_answerer
from graphrag_pipeline.query.index_reader import IndexReader, QuestionCalls
from graphrag_pipeline.query.methods.method import SearchStep
from graphrag_pipeline.query.methods.registry import METHODS, look_up_method
from graphrag_pipeline.query.methods.state import Query, SearchRequest, SearchState
from graphrag_pipeline.query.question import read_question
from graphrag_pipeline.query.results import Answer, Context
from graphrag_pipeline.query.streams import Listener, OnToken
from graphrag_pipeline.query.token_budget import TokenBudget
from graphrag_pipeline.query.understanding.time_phrases import TimeScope, read_time_scope
from graphrag_pipeline.query.usage import Account, QueryUsage


def prepare_query(index: IndexReader, request: SearchRequest) -> Query:
    """Read a question with the settings, filters, time and budget that it is answered by.

    The steps read `index.where(query.filters)`.

    Raises:
        PipelineError: an empty question, an unknown method, strategy, option or field, or a value that does not
            validate or compare.
    """
    method = look_up_method(request.method)
    settings = method.settings_of(index.settings, request.strategy, request.options)
    user_question = read_question(request.question)
    scope = read_time_scope(index.where(request.filters), user_question, method.now_of(settings))
    return Query(
        question=scope.question,
        user_question=user_question,
        method=request.method,
        snapshot=index.snapshot.id,
        settings=settings,
        budget=method.budget_of(settings),
        filters=(*request.filters, *scope.filters),
        time=scope,
    )


def prepare_baseline(index: IndexReader, request: SearchRequest) -> Query:
    """Read a question as a baseline of an evaluation does: word for word, with its time phrase.

    Raises:
        PipelineError: an unknown method or option, or a value that does not validate.
    """
    method, question = look_up_method(request.method), request.question
    settings = method.settings_of(index.settings, request.strategy, request.options)
    budget, scope = method.budget_of(settings), TimeScope(question)
    return Query(question, question, request.method, index.snapshot.id, settings, budget, (), scope)


def run_search(index: IndexReader, query: Query, listener: Listener) -> SearchState:
    """Run all steps of the query's method, and of the method that it picks.

    Args:
        index: what the query's filters leave of it.

    Raises:
        PipelineError: no call to a model can be answered, or the budget of the root is spent.
    """
    state = SearchState(query)
    if index.nothing_to_read:
        return replace(state, context=Context(), answer=Answer(index.nothing_to_read if listener.is_wanted else ""))
    state = run_steps(index, METHODS[query.method].steps, state, listener)
    if state.query.method != query.method:
        state = run_steps(index, METHODS[state.query.method].steps, state, listener)
    return state


def run_steps(
    index: IndexReader, steps: Sequence[SearchStep], state: SearchState, listener: Listener | None = None
) -> SearchState:
    """Run steps in a row, up to the context where no answer is wanted."""
    listener = listener or Listener()
    for step in steps:
        if state.context is not None and not listener.is_wanted:
            break
        had_context = state.context is not None
        state = run_step(index, step, state, listener.on_token)
        if state.context is not None and not had_context:
            listener.on_context(state.context)
    return state


def run_step(index: IndexReader, step: SearchStep, state: SearchState, on_token: OnToken | None = None) -> SearchState:
    """Run one step within the question's token budget, and add what it cost to the state.

    Raises:
        PipelineError: no call to a model can be answered, or the budget of the root is spent.
    """
    started = time.perf_counter()
    calls = QuestionCalls(Account(), TokenBudget(state.query.budget, state.spent), index.calls.scope)
    counted = index.for_question(calls)
    after = step.run(counted, state, choose_answerer(counted, on_token))
    usage = QueryUsage(calls.account.by_model(index.settings))
    return replace(
        after,
        spent=calls.budget.spent,
        usage=state.usage + usage,
        step_usage=usage,
        seconds=state.seconds + time.perf_counter() - started,
    )
