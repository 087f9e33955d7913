"""GraphIndex: one published index, opened for questions.

    with GraphIndex.open("my_root") as index:
        print(index.search("Who is Jacob Marley?").answer)

A search runs the declared steps of its method (`methods/`), as Dagster's query jobs do.

Running a search: a question is prepared once, then goes through the steps of its method.

The command line, Python, batches and evaluation run the steps in a row (`run_search`, `run_steps`); Dagster's query
jobs run each as an op (`run_step`).

Keep out: how a method
searches, and writing anything.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.endpoints.spans import parent_span
from graphrag_pipeline.query.answers.answering import choose_answerer
from graphrag_pipeline.query.index_reader import IndexReader, QuestionCalls
from graphrag_pipeline.query.methods.method import SearchStep
from graphrag_pipeline.query.methods.registry import METHODS, look_up_method
from graphrag_pipeline.query.methods.state import Query, SearchRequest, SearchState
from graphrag_pipeline.query.question import read_question, valid_unicode
from graphrag_pipeline.query.rendering import account_of
from graphrag_pipeline.query.results import Answer, Context
from graphrag_pipeline.query.search_result import SearchResult
from graphrag_pipeline.query.streams import Listener, OnToken, aiterate_tokens, await_search, iterate_tokens
from graphrag_pipeline.query.suggestions.suggested import SuggestedQuestions
from graphrag_pipeline.query.suggestions.suggesting import suggest_questions
from graphrag_pipeline.query.token_budget import Account, QueryUsage, TokenBudget
from graphrag_pipeline.query.understanding.comparison import add_comparison
from graphrag_pipeline.query.understanding.conversation import Turn
from graphrag_pipeline.query.understanding.lineage import add_lineage
from graphrag_pipeline.query.understanding.time_phrases import TimeScope, read_time_scope
from graphrag_pipeline.tables import CONTRACT_TABLES

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from graphrag_pipeline.models.event_loop import CallScope
    from graphrag_pipeline.pipeline.root import Root


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
    filtered = index.where(request.filters)
    scope = add_lineage(filtered, read_time_scope(filtered, user_question, method.now_of(settings)))
    scope = add_comparison(filtered, scope)
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


def as_result(state: SearchState, method: str, question: str) -> SearchResult:
    """Return the result of a search whose steps are done."""
    answer = state.noted_answer
    return SearchResult(
        answer=answer.text,
        citations=answer.citations,
        context=state.read,
        usage=state.whole_usage,
        seconds=state.seconds,
        method=method,
        question=question,
        snapshot=state.query.snapshot,
        selection=state.selection,
        answering=account_of(answer),
        candidates=state.candidates,
        options=state.query.options,
    )


class GraphIndex(IndexReader):
    """A published index that answers questions, from several threads too. It takes the arguments of `IndexReader`."""

    @classmethod
    def open(cls, root: str | Path | None = None, snapshot: str | None = None) -> Self:
        """Open the published snapshot of a root, or a given one.

        Args:
            root: a folder with settings.yaml; None searches where the command line does (`root.find_root`).
            snapshot: id of a snapshot; None is the published one.

        Raises:
            NoSnapshotError: no snapshot is published, or a file of the snapshot is missing.
            PipelineError: no root is found, the settings do not validate, or another embedding model made the index.
        """
        from graphrag_pipeline.pipeline.root import Root, find_root

        return cls.of_root(Root(find_root(root)), snapshot)

    @classmethod
    def of_root(cls, project: Root, snapshot: str | None = None) -> Self:
        """Open the published snapshot of an opened root, or a given one, with the root's models; see `open`."""
        return cls(project.open_snapshot(snapshot), project.settings, project.embedder, project)

    # ------------------------------------------------------------------------------------------------------- questions

    def search(
        self,
        question: str,
        method: str = "local",
        strategy: str | None = None,
        context_only: bool = False,
        filters: Sequence[str] = (),
        on_context: Callable[[Context], None] | None = None,
        on_token: OnToken | None = None,
        **options: Any,
    ) -> SearchResult:
        """Answer a question.

        Args:
            question: in words. If it is longer than 8,000 characters, its first and last 4,000 are read.
            method: one of `settings.search_names.SEARCH_METHODS`; `auto` picks one of the others.
            strategy: how local search chooses text units, also if auto picks it; None is the strategy of the settings.
            context_only: select the context and write no answer.
            filters: only documents that match all of them are read, such as ["year>=2024", "source=reuters"] (`where`).
            on_context: gets the context once it is chosen, before the answer is written.
            on_token: gets the answer in pieces: a model's text as it comes, and in the end all of the answer.
            options: override the method's section of the settings, such as `top_k_entities=20`.

        Raises:
            PipelineError: the question is empty, the method, strategy, option or field is unknown, or a value does not
                validate or compare.
        """
        given = (filters,) if isinstance(filters, str) else tuple(filters)
        return self.run(SearchRequest(question, method, strategy, given, options), context_only, on_context, on_token)

    def run(
        self,
        request: SearchRequest,
        context_only: bool = False,
        on_context: Callable[[Context], None] | None = None,
        on_token: OnToken | None = None,
    ) -> SearchResult:
        """Answer a question that is given as one value; see `search`."""
        started = time.perf_counter()
        return self.run_query(prepare_query(self, request), request, context_only, on_context, on_token, started)

    def run_query(
        self,
        query: Query,
        request: SearchRequest,
        context_only: bool = False,
        on_context: Callable[[Context], None] | None = None,
        on_token: OnToken | None = None,
        started: float | None = None,
    ) -> SearchResult:
        """Answer a question that `prepare_query` read from a request; see `search`.

        Args:
            started: `time.perf_counter` when the request came; None is now.

        Raises:
            PipelineError: no call to a model can be answered, the budget of the root is spent, or an option does not
                hold for the method that `auto` picks.
        """
        started = time.perf_counter() if started is None else started
        index = self.where(query.filters)
        listener = Listener(context_only, on_context, on_token, query.time.lead)
        with parent_span(f"query {request.method}", snapshot=self.snapshot.id):
            state = run_search(index, query, listener)
        listener.finish(state.noted_answer)
        filtered = index.document_mask.account() if index.document_mask else {}
        return replace(
            as_result(state, request.method, valid_unicode(request.question)),
            seconds=time.perf_counter() - started,
            selection=state.selection | filtered | query.time.account,
        )

    def stream(self, question: str, method: str = "local", **options: Any) -> Iterator[str | SearchResult]:
        """Answer a question: yield the answer in pieces as they come, and at last the result (see `search`)."""
        return iterate_tokens(
            lambda on_token, scope: self.within(scope).search(question, method, on_token=on_token, **options)
        )

    async def asearch(self, question: str, method: str = "local", **options: Any) -> SearchResult:
        """Search for code that is async; if it is cancelled, its calls to models are cancelled too."""
        return await await_search(lambda scope: self.within(scope).search(question, method, **options))

    def astream(self, question: str, method: str = "local", **options: Any) -> AsyncIterator[str | SearchResult]:
        """Stream for code that is async."""
        return aiterate_tokens(
            lambda on_token, scope: self.within(scope).search(question, method, on_token=on_token, **options)
        )

    def suggest_questions(
        self, question: str = "", history: Sequence[Turn] = (), n: int = 5, filters: Sequence[str] = ()
    ) -> SuggestedQuestions:
        """Return questions that a user might ask next; see `suggestions.suggesting.suggest_questions`.

        Args:
            history: turns (role, content) before the question, oldest first.
            filters: as in `search`.
        """
        return suggest_questions(self.where(filters), question, history, n)

    def table(self, name: str) -> pd.DataFrame:
        """Return a table of the snapshot, such as `entities`, with the columns of the reference.

        Raises:
            PipelineError: there is no such table.
        """
        if name not in CONTRACT_TABLES:
            raise PipelineError(f"there is no table `{name}`; the tables are {', '.join(CONTRACT_TABLES)}")
        return self.snapshot.table(name).to_pandas()

    def graph(self) -> nx.Graph:
        """Return the entities and relationships as a graph: by id, with all columns and the communities."""
        from graphrag_pipeline.interchange.index_export import read_graph

        return read_graph(self.snapshot)

    def within(self, scope: CallScope) -> Self:
        """Return this index with model calls that `scope` can cancel."""
        return self.for_question(QuestionCalls(scope=scope))
