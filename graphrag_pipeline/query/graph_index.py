"""GraphIndex: one published index, opened for questions.

    with GraphIndex.open("my_root") as index:
        print(index.search("Who is Jacob Marley?").answer)

A search method is a module of steps (select a context, rate, map, write an answer) that take an index, a question and
the method's settings; Dagster's query jobs run the same steps as ops. `methods.METHODS` names them. Keep out: how a
method searches, and writing anything.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from graphrag_pipeline.models.endpoints.spans import parent_span
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.methods import Found, look_up_method
from graphrag_pipeline.query.question import read_question, valid_unicode
from graphrag_pipeline.query.results import Answer, Context
from graphrag_pipeline.query.search_result import SearchResult
from graphrag_pipeline.query.streams import Listener, OnToken, aiterate_tokens, await_search, iterate_tokens
from graphrag_pipeline.query.token_budget import limited
from graphrag_pipeline.query.understanding.time_scope import read_time_scope
from graphrag_pipeline.query.usage import EMBEDDED, QueryUsage, accounted, embedded_usage


class GraphIndex(IndexReader):
    """A published index that answers questions; safe to ask from several threads. Arguments as of `IndexReader`."""

    @classmethod
    def open(cls, root: str | Path | None = None, snapshot: str | None = None) -> Self:
        """Open the published snapshot of a root, or the one named.

        Args:
            root: a folder with settings.yaml; None looks where the command line does (`root.find_root`).
            snapshot: id of a snapshot; None is the published one.

        Raises:
            NoSnapshotError: nothing is published, or a file of the snapshot is gone.
            PipelineError: no root, settings that do not validate, or an index of another embedding model.
        """
        from graphrag_pipeline.pipeline.root import Root, find_root

        project = Root(find_root(root))
        settings = project.settings
        if snapshot is None or not project.snapshots.path_of(snapshot).exists():
            project.follow()
        return cls(project.snapshots.open(snapshot), settings, project.embedder, project)

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
            question: in words. Of one over 8,000 characters the first and the last 4,000 are read.
            method: local, global, basic, drift, lazy or auto (which picks one of the others).
            strategy: local search, also where auto picks it: how text units are chosen; None is the one in settings.
            context_only: select the context and write no answer.
            filters: only documents that pass all of them are read, such as ["year>=2024", "source=reuters"] (`where`).
            on_context: gets the context once it is chosen, before the answer is written.
            on_token: gets the answer in pieces: a model's as it comes, and in the end all of it.
            options: override the method's section of the settings, such as `top_k_entities=20`.

        Raises:
            PipelineError: an empty question, an unknown method, strategy, option or field, or a value that does not
                validate or compare.
        """
        started = time.perf_counter()
        search_method = look_up_method(method)
        settings = search_method.settings_of(self.settings, strategy, options)
        asked = read_question(question)
        index = self.where(filters)
        timed = read_time_scope(index, asked, search_method.now_of(settings))
        asked, index = timed.question, index.where(timed.filters)
        listener = Listener(context_only, on_context, on_token)
        span = parent_span(self.settings.use_spans, f"query {method}", snapshot=self.snapshot.id)
        with accounted() as account, limited(search_method.budget_of(settings)), span:
            if index.nothing_to_read:
                found = Found(Answer("" if context_only else index.nothing_to_read), Context())
            else:
                found = search_method.run(index, asked, settings, listener)
        answer, context = found.answer, found.context
        listener.finish(answer, timed.note)
        answer = timed.tell(answer)
        embedded = embedded_usage(context.n_tokens, 0).by_model if answer.engine == EMBEDDED else {}
        return SearchResult(
            answer=answer.text,
            citations=answer.citations,
            context=context,
            usage=QueryUsage({**embedded, **account.by_model(self.settings)}),
            seconds=time.perf_counter() - started,
            method=method,
            question=valid_unicode(question),
            snapshot=self.snapshot.id,
            selection=found.selection | (index.document_mask.account() if index.document_mask else {}) | timed.account,
            answering={
                "engine": answer.engine,
                "invented_citations": answer.n_invented,
                "failure": answer.failure,
            },
            candidates=found.candidates,
        )

    def stream(self, question: str, method: str = "local", **options: Any) -> Iterator[str | SearchResult]:
        """Answer a question: the answer in pieces as they come, and at last the result (see `search`)."""
        return iterate_tokens(lambda on_token: self.search(question, method, on_token=on_token, **options))

    async def asearch(self, question: str, method: str = "local", **options: Any) -> SearchResult:
        """`search` for code that is async; cancelled, it gives up its calls to models."""
        return await await_search(lambda: self.search(question, method, **options))

    def astream(self, question: str, method: str = "local", **options: Any) -> AsyncIterator[str | SearchResult]:
        """`stream` for code that is async."""
        return aiterate_tokens(lambda on_token: self.search(question, method, on_token=on_token, **options))
