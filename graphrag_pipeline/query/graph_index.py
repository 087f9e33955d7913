"""GraphIndex: one published index, opened for questions.

    with GraphIndex.open("my_root") as index:
        print(index.search("Who is Jacob Marley?").answer)

A search method is a module of steps (select a context, rate, map, write an answer) that take an index, a question and
the method's settings; Dagster's query jobs run the same steps as ops. `METHODS` names them. Keep out: how a method
searches, and writing anything.
"""

from __future__ import annotations

import difflib
import functools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ValidationError

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query import basic_search, global_search, local_search
from graphrag_pipeline.query.answers import write_answer, write_global_answer
from graphrag_pipeline.query.question import NameIndex, read_question, valid_unicode
from graphrag_pipeline.query.results import Answer, Context, SearchResult, embedded_usage
from graphrag_pipeline.query.selection import check_strategy
from graphrag_pipeline.settings import BasicSearchSettings, GlobalSearchSettings, LocalSearchSettings, Settings

if TYPE_CHECKING:
    from graphrag_pipeline.models.ports import Embedder
    from graphrag_pipeline.storage.snapshots import Snapshot

NO_ANSWER = Answer("")


class GraphIndex:
    """One immutable snapshot with the embedder that made its vectors; safe to ask from several threads.

    Args:
        snapshot: an opened snapshot.
        settings: of the root; a search reads its own section and `answers`.
        embedder: must be the one whose vectors the snapshot holds.

    Raises:
        PipelineError: the snapshot's vectors come from another embedding model.
    """

    def __init__(self, snapshot: Snapshot, settings: Settings, embedder: Embedder) -> None:
        _check_fingerprint(snapshot, embedder)
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
        return cls(project.snapshots.open(snapshot), settings, project.embedder)

    def close(self) -> None:
        """Forget what was loaded; the index is not usable afterwards."""
        self._columns.clear()
        self.__dict__.pop("names", None)

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
        **options: Any,
    ) -> SearchResult:
        """Answer a question.

        Args:
            question: in words. Of one over 8,000 characters the first and the last 4,000 are read.
            method: local, global or basic.
            strategy: local search: how text units are chosen; None is the one in settings.
            context_only: select the context and write no answer.
            options: override the method's section of the settings, such as `top_k_entities=20`.

        Raises:
            PipelineError: an empty question, an unknown method, strategy or option, or a value that does not validate.
        """
        started = time.perf_counter()
        search_method = _look_up_method(method)
        settings = search_method.settings_of(self.settings, strategy, options)
        asked = read_question(question)
        answer, context, selection = search_method.run(self, asked, settings, context_only)
        return SearchResult(
            answer=answer.text,
            citations=answer.citations,
            context=context,
            usage=embedded_usage(context.n_tokens, 0),
            seconds=time.perf_counter() - started,
            method=method,
            question=valid_unicode(question),
            snapshot=self.snapshot.id,
            selection=selection,
        )

    # ----------------------------------------------------------------------------------------- what the methods read

    def embed(self, texts: list[str]) -> np.ndarray:
        """float32 (len(texts), dimensions)."""
        return self.embedder.embed(texts)

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
        """Entities by their names, built at first use."""
        entities = self.snapshot.table("entities")
        return NameIndex(entities["title"].to_pylist(), entities["names"].to_pylist())


def _check_fingerprint(snapshot: Snapshot, embedder: Embedder) -> None:
    made_by = snapshot.manifest.embedding_fingerprint
    if made_by != embedder.fingerprint:
        raise PipelineError(
            f"snapshot {snapshot.id} has vectors of {made_by!r}, but the settings name {embedder.fingerprint!r}; "
            "run `graphrag-pipeline index` to embed again, or set `embeddings` back to the model that made the index"
        )


# ------------------------------------------------------------------------------------------------------------- methods

Found = tuple[Answer, Context, dict[str, Any]]


def _search_locally(index: GraphIndex, question: str, settings: LocalSearchSettings, context_only: bool) -> Found:
    context = local_search.select_local_context(index, question, settings)
    answer = NO_ANSWER if context_only else write_answer(index, question, context, index.settings.answers)
    return answer, context, {"strategy": settings.strategy}


def _search_globally(index: GraphIndex, question: str, settings: GlobalSearchSettings, context_only: bool) -> Found:
    selection = global_search.rate_reports(index, question, settings)
    context = global_search.select_global_context(index, selection)
    if context_only:
        return NO_ANSWER, context, selection.account()
    points = global_search.map_points(index, question, selection)
    limits = settings.max_answer_tokens, index.settings.answers.max_sentences
    chosen = global_search.reduce_points(index, points, *limits)
    answer = write_global_answer(index, question, chosen, selection)
    return answer, context, {**selection.account(), "points": len(points)}


def _search_basically(index: GraphIndex, question: str, settings: BasicSearchSettings, context_only: bool) -> Found:
    context = basic_search.select_basic_context(index, question, settings)
    return NO_ANSWER if context_only else write_answer(index, question, context, index.settings.answers), context, {}


@dataclass(frozen=True)
class SearchMethod:
    """One way to answer: which section of the settings it reads, and its steps in a row."""

    section: str
    run: Callable[[GraphIndex, str, Any, bool], Found]

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
