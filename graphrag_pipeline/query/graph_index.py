"""GraphIndex: one published index, opened for questions.

    with GraphIndex.open("my_root") as index:
        print(index.search("Who is Jacob Marley?").answer)

A search method is a module of steps (select a context, rate, map, write an answer) that take an index, a question and
the method's settings; Dagster's query jobs run the same steps as ops. `methods.METHODS` names them. Keep out: how a
method searches, and writing anything.
"""

from __future__ import annotations

import functools
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.endpoints.spans import parent_span
from graphrag_pipeline.models.static_embeddings import load_static_embeddings
from graphrag_pipeline.query.answers.extractive import EMPTY_INDEX
from graphrag_pipeline.query.answers.model import OnToken
from graphrag_pipeline.query.answers.model_accounts import EMBEDDINGS, accounted, booked
from graphrag_pipeline.query.answers.model_streams import Listener, aiterate_tokens, await_search, iterate_tokens
from graphrag_pipeline.query.answers.token_budget import limited
from graphrag_pipeline.query.answers.usage import EMBEDDED, QueryUsage, embedded_usage
from graphrag_pipeline.query.methods import Found, look_up_method
from graphrag_pipeline.query.results import Answer, Context, SearchResult
from graphrag_pipeline.query.understanding.document_mask import DocumentMask, document_rows, find_document_mask
from graphrag_pipeline.query.understanding.filters import DocumentFields
from graphrag_pipeline.query.understanding.question import NameIndex, read_question, valid_unicode
from graphrag_pipeline.query.understanding.time_scope import read_time_scope
from graphrag_pipeline.settings.settings import Settings

if TYPE_CHECKING:
    from graphrag_pipeline.models.ports import Embedder, StreamingChatModel
    from graphrag_pipeline.models.prompts import Prompt
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline.storage.snapshots import Snapshot

MAX_VIEWS = 4
"""Sets of filters whose masks an index keeps: a few megabytes each, and the mention graph where a walk is asked for."""


class GraphIndex:
    """One immutable snapshot with the embedder that made its vectors; safe to ask from several threads.

    Args:
        snapshot: an opened snapshot.
        settings: of the root; a search reads its own section, `rating` and `answers`.
        embedder: must be the one whose vectors the snapshot holds.
        root: whose models and prompts are asked where settings say `engine: model`.

    Attributes:
        passing: which records may be read where filters were given (`where`); None: all.

    Raises:
        PipelineError: the snapshot's vectors come from another embedding model.
    """

    def __init__(self, snapshot: Snapshot, settings: Settings, embedder: Embedder, root: Root | None = None) -> None:
        _check_fingerprint(snapshot, embedder)
        self.document_mask: DocumentMask | None = None
        self._root = root
        self.snapshot = snapshot
        self.settings = settings
        self.embedder = embedder
        self._columns: dict[tuple[str, str], np.ndarray] = {}
        self._views: dict[tuple[str, ...], GraphIndex] = {}
        self._whole: GraphIndex | None = None

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
        from graphrag_pipeline.pipeline.root import Root, find_root

        project = Root(find_root(root))
        settings = project.settings
        if snapshot is None or not project.snapshots.path_of(snapshot).exists():
            project.follow()
        return cls(project.snapshots.open(snapshot), settings, project.embedder, project)

    def close(self) -> None:
        """Forget what was loaded and let the snapshot go; the index is not usable afterwards."""
        self._columns.clear()
        self._views.clear()
        self.__dict__.pop("names", None)
        self.snapshot.close()

    def __enter__(self) -> GraphIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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

    # --------------------------------------------------------------------------------------------------------- filters

    def where(self, filters: Sequence[str]) -> GraphIndex:
        """This index as if it held only the documents that pass all of some filters; itself if there are none.

        Every step of a search takes one in place of the whole (`document_mask.py`, `restricted_snapshot.py`).

        Raises:
            PipelineError: what is no filter, an unknown field, or a value that does not compare.
        """
        listed = [filters] if isinstance(filters, str) else filters
        wanted = tuple(dict.fromkeys(text.strip() for text in listed))
        if not wanted:
            return self
        if self._whole and self.document_mask:
            return self._whole.where([*self.document_mask.filters, *wanted])
        view = self._views.get(wanted)
        if view is None:
            for oldest in list(self._views)[: 1 - MAX_VIEWS]:
                self._views.pop(oldest, None)
            view = self._views[wanted] = self._restrict(wanted)
        return view

    def _restrict(self, filters: tuple[str, ...]) -> GraphIndex:
        from graphrag_pipeline.query.understanding.restricted_snapshot import RestrictedSnapshot

        document_mask = find_document_mask(self.snapshot, self.document_fields, self._document_rows, filters)
        view = GraphIndex(RestrictedSnapshot(self.snapshot, document_mask), self.settings, self.embedder, self._root)
        view._columns, view._whole, view.document_mask = self._columns, self, document_mask
        return view

    @functools.cached_property
    def document_fields(self) -> DocumentFields:
        """What documents can be filtered by."""
        return DocumentFields(self.snapshot.table("documents"))

    @functools.cached_property
    def _document_rows(self) -> np.ndarray:
        return document_rows(self.snapshot)

    @functools.cached_property
    def nothing_to_read(self) -> str:
        """Why no question can be answered: no documents, or none that passes; "" if there are some."""
        if not self.snapshot.n_rows("documents"):
            return EMPTY_INDEX
        return self.document_mask.why_nothing() if self.document_mask and not self.document_mask.n_documents else ""

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
        """Rows of numbers in an ascending column (`human_readable_id`, `community`); -1 where none passes."""
        values = self.column(table, column)
        wanted = np.fromiter(numbers, dtype=np.int64)
        if not len(values):
            return np.full(len(wanted), -1, dtype=np.int64)
        found = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
        return np.where((values[found] == wanted) & self.row_mask(table)[found], found, -1)

    def row_mask(self, table: str) -> np.ndarray:
        """Which rows of a contract table may be read, bool (n rows,)."""
        if self.document_mask is None:
            return np.broadcast_to(True, self.snapshot.n_rows(table))
        return self.document_mask.masks[table]

    def documents(self, ids: Iterable[str]) -> dict[str, tuple[str, str]]:
        """Title and path of documents by id."""
        rows = self.snapshot.rows_of("documents", sorted(set(ids)))
        known = self.snapshot.take("documents", rows[rows >= 0], ["id", "title", "path"])
        return {record["id"]: (record["title"], record["path"]) for record in known}

    @functools.cached_property
    def names(self) -> NameIndex:
        """Entities by their names."""
        arrays = self.snapshot.lookups
        hashes, rows = arrays.array("name_hashes"), arrays.array("name_rows")
        if self.document_mask is not None:
            is_kept = self.document_mask.masks["entities"][rows]
            hashes, rows = hashes[is_kept], rows[is_kept]
        return NameIndex.stored(hashes, rows)


def _check_fingerprint(snapshot: Snapshot, embedder: Embedder) -> None:
    made_by = snapshot.manifest.embedding_fingerprint
    if made_by != embedder.fingerprint:
        raise PipelineError(
            f"snapshot {snapshot.id} has vectors of another embedding model ({made_by}) than `embeddings` and "
            f"`embedding_model` of settings.yaml name ({embedder.fingerprint}); run `graphrag-pipeline index` to embed "
            "again, or set them back to the model that made the index: `status` names old and new"
        )
