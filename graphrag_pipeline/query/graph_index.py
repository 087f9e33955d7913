"""GraphIndex: one published index, opened for questions.

    with GraphIndex.open("my_root") as index:
        print(index.search("Who is Jacob Marley?").answer)

A search method is a module of steps (select a context, rate, map, write an answer) that take an index, a question and
the method's settings; Dagster's query jobs run the same steps as ops. `METHODS` names them. Keep out: how a method
searches, and writing anything.
"""

from __future__ import annotations

import asyncio
import difflib
import functools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ValidationError

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.static_embeddings import load_static_embeddings
from graphrag_pipeline.query import basic_search, global_search, local_search
from graphrag_pipeline.query.engines import map_points, write_answer, write_global_answer
from graphrag_pipeline.query.model_accounts import EMBEDDINGS, accounted, booked
from graphrag_pipeline.query.model_answers import Say
from graphrag_pipeline.query.model_streams import Listener, iterate_said
from graphrag_pipeline.query.question import NameIndex, read_question, valid_unicode
from graphrag_pipeline.query.results import Answer, Context, SearchResult
from graphrag_pipeline.query.selection import check_strategy
from graphrag_pipeline.query.usage import EMBEDDED, Usage, embedded_usage
from graphrag_pipeline.settings import BasicSearchSettings, GlobalSearchSettings, LocalSearchSettings, Settings

if TYPE_CHECKING:
    from graphrag_pipeline.models.ports import Embedder, StreamingChatModel
    from graphrag_pipeline.models.prompts import Prompt
    from graphrag_pipeline.root import Root
    from graphrag_pipeline.storage.snapshots import Snapshot

NO_ANSWER = Answer("")


class GraphIndex:
    """One immutable snapshot with the embedder that made its vectors; safe to ask from several threads.

    Args:
        snapshot: an opened snapshot.
        settings: of the root; a search reads its own section, `rating` and `answers`.
        embedder: must be the one whose vectors the snapshot holds.
        root: whose models and prompts are asked where settings say `engine: model`.

    Raises:
        PipelineError: the snapshot's vectors come from another embedding model.
    """

    def __init__(self, snapshot: Snapshot, settings: Settings, embedder: Embedder, root: Root | None = None) -> None:
        _check_fingerprint(snapshot, embedder)
        self._root = root
        self.snapshot = snapshot
        self.settings = settings
        self.embedder = embedder
        self._columns: dict[tuple[str, str], np.ndarray] = {}

    @classmethod
    def open(cls, root: str | Path | None = None, snapshot: str | None = None) -> GraphIndex:
        """Open the published snapshot of a root, or the one named.

        Args:
            root: a folder with settings.yaml; None looks where the command line does (`root.find_root`).
            snapshot: id of a snapshot; None is the published one.

        Raises:
            NoSnapshotError: nothing is published, or a file of the snapshot is gone.
            PipelineError: no root, settings that do not validate, or an index of another embedding model.
        """
        from graphrag_pipeline.root import Root, find_root

        project = Root(find_root(root))
        settings = project.settings
        return cls(project.snapshots.open(snapshot), settings, project.embedder, project)

    def close(self) -> None:
        """Forget what was loaded and let the snapshot go; the index is not usable afterwards."""
        self._columns.clear()
        self.__dict__.pop("names", None)
        self.snapshot.close()

    def __enter__(self) -> GraphIndex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------------------- questions

    def search(
        self,
        question: str,
        method: str = "local",
        strategy: str | None = None,
        context_only: bool = False,
        say: Say | None = None,
        **options: Any,
    ) -> SearchResult:
        """Answer a question.

        Args:
            question: in words. Of one over 8,000 characters the first and the last 4,000 are read.
            method: local, global or basic.
            strategy: local search: how text units are chosen; None is the one in settings.
            context_only: select the context and write no answer.
            say: gets the answer in pieces: a model's as it comes, and in the end all of it.
            options: override the method's section of the settings, such as `top_k_entities=20`.

        Raises:
            PipelineError: an empty question, an unknown method, strategy or option, or a value that does not validate.
        """
        started = time.perf_counter()
        search_method = _look_up_method(method)
        settings = search_method.settings_of(self.settings, strategy, options)
        asked = read_question(question)
        listener = Listener(say, context_only)
        with accounted() as account:
            answer, context, selection = search_method.run(self, asked, settings, listener)
        listener.finish(answer)
        embedded = embedded_usage(context.n_tokens, 0).by_model if answer.engine == EMBEDDED else {}
        return SearchResult(
            answer=answer.text,
            citations=answer.citations,
            context=context,
            usage=Usage({**embedded, **account.by_model(self.settings)}),
            seconds=time.perf_counter() - started,
            method=method,
            question=valid_unicode(question),
            snapshot=self.snapshot.id,
            selection=selection,
            answering={
                "engine": answer.engine,
                "invented_citations": answer.n_invented,
                "failure": answer.failure,
            },
        )

    def stream(self, question: str, method: str = "local", **options: Any) -> Iterator[str | SearchResult]:
        """Answer a question: the answer in pieces as they come, and at last the result (see `search`)."""
        return iterate_said(lambda say: self.search(question, method, say=say, **options))

    async def asearch(self, question: str, method: str = "local", **options: Any) -> SearchResult:
        """`search` for code that is async."""
        return await asyncio.to_thread(self.search, question, method, **options)

    # ----------------------------------------------------------------------------------------- what the methods read

    def embed(self, texts: list[str]) -> np.ndarray:
        """float32 (len(texts), dimensions)."""
        with booked(EMBEDDINGS):
            return self.embedder.embed(texts)

    def embed_passages(self, texts: list[str]) -> np.ndarray:
        """Vectors by which passages are compared with a question: the bundled ones, so that nothing is paid for it."""
        return load_static_embeddings().embed(texts)

    @property
    def is_static(self) -> bool:
        """Whether the vectors of the index are those of `embed_passages`."""
        return self.embedder.fingerprint == load_static_embeddings().fingerprint

    def chat_model(self, section: str) -> StreamingChatModel:
        """The chat model that a section of the settings asks."""
        return self._models_of_root.models.chat_model(section)

    def prompt(self, name: str) -> Prompt:
        """A prompt of the root."""
        return self._models_of_root.prompt(name)

    @property
    def _models_of_root(self) -> Root:
        if self._root is None:
            raise PipelineError(
                "this index was opened without a root, so there is no model to ask: use GraphIndex.open"
            )
        return self._root

    def column(self, table: str, column: str) -> np.ndarray:
        """A number column of a contract table, kept as an array once read."""
        key = (table, column)
        if key not in self._columns:
            self._columns[key] = self.snapshot.table(table)[column].to_numpy()
        return self._columns[key]

    def rows_of_numbers(self, table: str, column: str, numbers: Iterable[int]) -> np.ndarray:
        """Rows of numbers in an ascending column (`human_readable_id`, `community`); -1 where there is none."""
        values = self.column(table, column)
        wanted = np.fromiter(numbers, dtype=np.int64)
        if not len(values):
            return np.full(len(wanted), -1, dtype=np.int64)
        found = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
        return np.where(values[found] == wanted, found, -1)

    def document_titles(self, ids: Iterable[str]) -> dict[str, str]:
        """Titles of documents by id."""
        distinct = sorted(set(ids))
        rows = self.snapshot.rows_of("documents", distinct)
        known = self.snapshot.take("documents", rows[rows >= 0], ["id", "title"])
        return {record["id"]: record["title"] for record in known}

    @functools.cached_property
    def names(self) -> NameIndex:
        """Entities by their names."""
        arrays = self.snapshot.lookups
        return NameIndex.stored(arrays.array("name_hashes"), arrays.array("name_rows"))


def _check_fingerprint(snapshot: Snapshot, embedder: Embedder) -> None:
    made_by = snapshot.manifest.embedding_fingerprint
    if made_by != embedder.fingerprint:
        raise PipelineError(
            f"snapshot {snapshot.id} has vectors of another embedding model ({made_by}) than `embeddings` and "
            f"`embedding_model` of settings.yaml name ({embedder.fingerprint}); run `graphrag-pipeline index` to embed "
            "again, or set them back to the model that made the index: `status` names old and new"
        )


# ------------------------------------------------------------------------------------------------------------- methods

Found = tuple[Answer, Context, dict[str, Any]]


def _search_locally(index: GraphIndex, question: str, settings: LocalSearchSettings, listener: Listener) -> Found:
    context = local_search.select_local_context(index, question, settings)
    answer = write_answer(index, question, context, listener.say) if listener.is_wanted else NO_ANSWER
    return answer, context, {"strategy": settings.strategy}


def _search_globally(index: GraphIndex, question: str, settings: GlobalSearchSettings, listener: Listener) -> Found:
    selection = global_search.rate_reports(index, question, settings)
    context = global_search.select_global_context(index, selection)
    if not listener.is_wanted:
        return NO_ANSWER, context, selection.account()
    mapped = map_points(index, question, selection, settings)
    answer = write_global_answer(index, question, mapped, selection, settings, listener.say)
    return answer, context, {**selection.account(), "points": len(mapped.points), **mapped.details()}


def _search_basically(index: GraphIndex, question: str, settings: BasicSearchSettings, listener: Listener) -> Found:
    context = basic_search.select_basic_context(index, question, settings)
    return write_answer(index, question, context, listener.say) if listener.is_wanted else NO_ANSWER, context, {}


@dataclass(frozen=True)
class SearchMethod:
    """One way to answer: which section of the settings it reads, and its steps in a row."""

    section: str
    run: Callable[[GraphIndex, str, Any, Listener], Found]

    def settings_of(self, settings: Settings, strategy: str | None, options: dict[str, Any]) -> BaseModel:
        """The method's settings with options over them.

        Raises:
            PipelineError: the method has no strategies, or an option is unknown or does not validate.
        """
        section: BaseModel = getattr(settings, self.section)
        known = type(section).model_fields
        if strategy is not None:
            if "strategy" not in known:
                raise PipelineError(f"strategy {strategy!r}: only local search has text unit selection strategies")
            options = {**options, "strategy": strategy}
        for name in options:
            if name not in known:
                raise PipelineError(f"unknown option {name!r} of {self.section}{_nearest(name, known)}")
        try:
            changed = type(section).model_validate({**section.model_dump(), **options})
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, p['loc'])) or self.section}: {p['msg']}" for p in error.errors())
            raise PipelineError(f"options of {self.section}: {problems}") from None
        if "strategy" in known:
            check_strategy(getattr(changed, "strategy"))  # noqa: B009 - only the local section has it
        return changed


def _nearest(name: str, candidates: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; valid: {', '.join(candidates)}"


METHODS: dict[str, SearchMethod] = {
    "local": SearchMethod("local_search", _search_locally),
    "global": SearchMethod("global_search", _search_globally),
    "basic": SearchMethod("basic_search", _search_basically),
}


def _look_up_method(method: str) -> SearchMethod:
    if method not in METHODS:
        raise PipelineError(f"unknown search method {method!r}; valid: {', '.join(METHODS)}")
    return METHODS[method]
