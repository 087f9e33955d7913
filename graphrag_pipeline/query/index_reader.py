"""One published snapshot as the steps of a search read it, with the models that the root names.

An `IndexReader` adds filters on documents, the embedder and the clients of chat models to a `SnapshotReader`. It lies
below all searches; `graph_index.GraphIndex` adds the searches.

One snapshot as its readers see it, without a model: number columns, names, documents and what a filter hides.

Pages of records (`reading/`) need no more than this.

Keep out: searching, and writing anything.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from graphrag_pipeline.arrow_columns import narrow_type
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.accounting import Caller, embedder_for
from graphrag_pipeline.models.pieces import identity_of
from graphrag_pipeline.models.ports import can_search, expecting, for_questions, load_static_embedder
from graphrag_pipeline.publishing.arrays import LAYOUT_ARRAYS
from graphrag_pipeline.query.filtering.document_mask import DocumentFields, document_rows, find_document_mask
from graphrag_pipeline.query.names import NameIndex
from graphrag_pipeline.query.token_budget import EMBEDDINGS, RERANKING, Account, TokenBudget
from graphrag_pipeline.settings.settings import Settings

if TYPE_CHECKING:
    from graphrag_pipeline.models.endpoints.reranker import Reranker
    from graphrag_pipeline.models.event_loop import CallScope
    from graphrag_pipeline.models.ports import Embedder, StreamingChatModel
    from graphrag_pipeline.models.prompts import Prompt
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline.query.filtering.document_mask import DocumentMask
    from graphrag_pipeline.storage.snapshots import Snapshot


def _sort_rows(values: pa.ChunkedArray, is_descending: bool) -> np.ndarray:
    import pyarrow.compute as pc

    folded = pc.utf8_lower(values) if narrow_type(values.type) == pa.string() else values
    order = pc.sort_indices(folded, [("", "descending" if is_descending else "ascending")])
    rows: np.ndarray = order.to_numpy()
    return rows.astype(np.int32)


class SnapshotReader:
    """One immutable snapshot; safe to use from several threads.

    Args:
        snapshot: an opened snapshot.

    Attributes:
        document_mask: the records that may be read; None: all.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.document_mask: DocumentMask | None = None
        self._columns: dict[tuple[str, str], np.ndarray] = {}
        self._shared: Self | None = None

    def column(self, table: str, column: str) -> np.ndarray:
        """Return a number column of a contract table; it is kept as an array."""
        key = (table, column)
        if key not in self._columns:
            self._columns[key] = self.snapshot.table(table)[column].to_numpy()
        return self._columns[key]

    def order(self, table: str, column: str, is_descending: bool = False) -> np.ndarray:
        """Return all rows of a contract table by the values of a column, ties in file order; it is kept as an array.

        Text counts without regard to case, and records without a value come last.
        """
        key = (f"order of {table}", f"{column}{' down' * is_descending}")
        if key not in self._columns:
            self._columns[key] = _sort_rows(self.snapshot.table(table)[column], is_descending)
        return self._columns[key]

    def rows_of_numbers(self, table: str, column: str, numbers: Iterable[int]) -> np.ndarray:
        """Return the rows of numbers in an ascending column (`human_readable_id`, `community`).

        The row is -1 where the number is unknown or its record may not be read.
        """
        values = self.column(table, column)
        wanted = np.fromiter(numbers, dtype=np.int64)
        if not len(values):
            return np.full(len(wanted), -1, dtype=np.int64)
        found = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
        return np.where((values[found] == wanted) & self.row_mask(table)[found], found, -1)

    def row_mask(self, table: str) -> np.ndarray:
        """Return which rows of a contract table may be read, bool (n rows,)."""
        if self.document_mask is None:
            return np.broadcast_to(True, self.snapshot.n_rows(table))
        return self.document_mask.masks[table]

    def documents(self, ids: Iterable[str]) -> dict[str, tuple[str, str, str | None]]:
        """Return the title, the path and the date of documents by id."""
        rows = self.snapshot.rows_of("documents", sorted(set(ids)))
        known = self.snapshot.take("documents", rows[rows >= 0], ["id", "title", "path", "creation_date"])
        return {record.pop("id"): tuple(record.values()) for record in known}

    @functools.cached_property
    def names(self) -> NameIndex:
        """The entities by their names."""
        if self._shared:
            return self._shared.names  # loaded once, for all questions
        hashes, rows = (self.snapshot.lookups.array(name) for name in ("name_hashes", "name_rows"))
        if self.document_mask is not None:
            is_kept = self.document_mask.masks["entities"][rows]
            hashes, rows = hashes[is_kept], rows[is_kept]
        return NameIndex.stored(hashes, rows)

    @functools.cached_property
    def layout(self) -> Mapping[str, np.ndarray]:
        """The arrays of the layout (`publishing/arrays.py`)."""
        if self._shared:
            return self._shared.layout
        return {name: self.snapshot.adjacency.array(name) for name in LAYOUT_ARRAYS}


MAX_VIEWS = 4
"""Sets of filters whose masks an index keeps: a few megabytes each, and the mention graph where PageRank needs it."""
EMPTY_INDEX = "The index has no documents: put some into the input folder and run `graphrag-pipeline index`."


@dataclass(frozen=True)
class QuestionCalls:
    """Shared state of the model calls of one question.

    Attributes:
        account: counts the calls.
        budget: limits their tokens.
        scope: cancels them; None if they are never cancelled.
    """

    account: Account = field(default_factory=Account)
    budget: TokenBudget = field(default_factory=TokenBudget)
    scope: CallScope | None = None

    def caller(self, section: str) -> Caller:
        """Return the caller whose calls count in a section of the account."""
        return Caller((self.account.section(section),), self.scope)


class IndexReader(SnapshotReader):
    """One immutable snapshot with the embedder that made its vectors; safe to use from several threads.

    Args:
        snapshot: an opened snapshot.
        settings: of the root; a search reads its own section, `rating` and `answers`.
        embedder: must be the one whose vectors the snapshot holds.
        root: its models and prompts are used where settings say `engine: model`.

    Attributes:
        document_mask: the records that may be read where filters were given (`where`); None: all.
        calls: account, token budget and scope of the question that is answered (`for_question`).

    Raises:
        PipelineError: the snapshot's vectors come from another embedding model.
    """

    def __init__(self, snapshot: Snapshot, settings: Settings, embedder: Embedder, root: Root | None = None) -> None:
        _check_fingerprint(snapshot, settings, embedder)
        super().__init__(snapshot)
        self._root = root
        self.settings = settings
        self.embedder = embedder
        self._views: dict[tuple[str, ...], Self] = {}
        self._whole: Self | None = None
        self.calls = QuestionCalls()

    def close(self) -> None:
        """Release what was loaded and close the snapshot; the index is not usable afterwards."""
        self._columns.clear()
        while self._views:
            self._views.popitem()[1].close()
        for name in ("names", "layout", "document_fields", "_document_rows"):
            self.__dict__.pop(name, None)
        self.snapshot.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --------------------------------------------------------------------------------------------------------- filters

    def where(self, filters: Sequence[str]) -> Self:
        """Return this index as if it held only the documents that match all filters; without filters, this index.

        Every step of a search can read the returned index in place of the whole (`filtering/document_mask.py`,
        `filtering/restricted_snapshot.py`).

        Raises:
            PipelineError: a text is not a filter, its field is unknown, or its value does not compare.
        """
        listed = [filters] if isinstance(filters, str) else filters
        wanted = tuple(dict.fromkeys(text.strip() for text in listed))
        if not wanted:
            return self
        if self._shared:
            return self._shared.where(wanted).for_question(self.calls)
        if self._whole and self.document_mask:
            return self._whole.where([*self.document_mask.filters, *wanted])
        view = self._views.get(wanted)
        if view is None:
            for oldest in list(self._views)[: 1 - MAX_VIEWS]:
                self._views.pop(oldest, None)
            view = self._views[wanted] = self._restrict(wanted)
        return view

    def _restrict(self, filters: tuple[str, ...]) -> Self:
        # Imported here: the snapshot's module imports pandas, which opening an index does not need.
        from graphrag_pipeline.query.filtering.restricted_snapshot import RestrictedSnapshot

        mask = find_document_mask(self.snapshot, self.document_fields, self._document_rows, filters)
        view = type(self)(RestrictedSnapshot(self.snapshot, mask), self.settings, self.embedder, self._root)
        view._columns, view._whole, view.document_mask = self._columns, self, mask
        return view

    def for_question(self, calls: QuestionCalls) -> Self:
        """Return this index for one question: the same loaded data, but its own account, token budget and scope."""
        index = copy.copy(self)
        index._shared, index.calls = self._shared or self, calls
        return index

    @functools.cached_property
    def document_fields(self) -> DocumentFields:
        """The fields of documents that filters can name."""
        return DocumentFields(self.snapshot.table("documents"))

    @functools.cached_property
    def _document_rows(self) -> np.ndarray:
        return document_rows(self.snapshot)

    @property
    def documents_of_units(self) -> np.ndarray:
        """Numbers that are equal for text units of one document, int32 (n text units,); -1 if an import has none."""
        key = ("text_units", "number of the document")
        if key not in self._columns:
            self._columns[key] = _number(self.snapshot.table("text_units")["document_id"])
        return self._columns[key]

    @functools.cached_property
    def nothing_to_read(self) -> str:
        """The reason why no question can be answered: no documents, or none that matches the filters; else ""."""
        if not self.snapshot.n_rows("documents"):
            return EMPTY_INDEX
        return (
            self.document_mask.describe_no_match() if self.document_mask and not self.document_mask.n_documents else ""
        )

    # ----------------------------------------------------------------------------------------- what the methods read

    def embed(self, texts: list[str]) -> np.ndarray:
        """Return the vectors of texts that are like those of the index, float32 (len(texts), dimensions)."""
        return self._embedder_of_index.embed(texts)

    def embed_question(self, question: str) -> np.ndarray:
        """Return the vector of a question, float32 (dimensions,)."""
        return for_questions(self._embedder_of_index).embed([question])[0]

    @property
    def _embedder_of_index(self) -> Embedder:
        """The embedder for the question that is answered; vectors of another length than the index has are an error."""
        called = embedder_for(self.embedder, self.calls.caller(EMBEDDINGS))
        return expecting(called, self.snapshot.manifest.dimensions)

    def embed_passages(self, texts: list[str]) -> np.ndarray:
        """Return the vectors by which passages are compared with a question: the bundled ones, which cost nothing."""
        return load_static_embedder().embed(texts)

    @property
    def is_static(self) -> bool:
        """Whether the vectors of the index are those of `embed_passages`."""
        return self.embedder.fingerprint == load_static_embedder().fingerprint

    def chat_model(self, section: str) -> StreamingChatModel:
        """Return the client of the chat model that a section of the settings names."""
        return self._models_of_root.models.chat_model(section).for_caller(self.calls.caller(section))

    @property
    def reranker(self) -> Reranker:
        """The client of the reranking model.

        Raises:
            PipelineError: no reranking model is set.
        """
        if not self.settings.rerank_model.model:
            raise PipelineError("rerank is true, but rerank_model.model is empty: set it in settings.yaml")
        return self._models_of_root.models.reranker.for_caller(self.calls.caller(RERANKING))

    def prompt(self, name: str) -> Prompt:
        """Return a prompt of the root."""
        return self._models_of_root.prompt(name)

    @property
    def _models_of_root(self) -> Root:
        if self._root is None:
            raise PipelineError(
                "this index was opened without a root, so it has no chat model; open it with `GraphIndex.open`"
            )
        return self._root


def _number(values: pa.ChunkedArray) -> np.ndarray:
    """Return a number for each distinct text, int32 (n,); -1 for "" and null."""
    import pyarrow.compute as pc

    found = pc.if_else(pc.equal(values, ""), None, values).combine_chunks().dictionary_encode().indices
    numbers: np.ndarray = found.fill_null(-1).to_numpy()
    return numbers


def _check_fingerprint(snapshot: Snapshot, settings: Settings, embedder: Embedder) -> None:
    made_by = snapshot.manifest.embedding_fingerprint
    if not can_search(embedder, made_by):
        differing = _name_differences(snapshot, settings, embedder)
        raise PipelineError(
            f"snapshot {snapshot.id} has vectors of another embedding model ({made_by}) than `embeddings` and "
            f"`embedding_model` of settings.yaml name ({embedder.fingerprint}){differing}; run `graphrag-pipeline "
            "index` to embed again, or set them back to the model that made the index: `status` names old and new"
        )


def _name_differences(snapshot: Snapshot, settings: Settings, embedder: Embedder) -> str:
    """Return what differs between the embedding of a snapshot and that of the settings; "" if not recorded."""
    recorded = (
        {name: value for name, value in code.items() if name.startswith(("embedding model", "embedding_model."))}
        for code in snapshot.manifest.code.values()
    )
    old = next(filter(None, recorded), None)
    if old is None:
        return ""
    is_model = settings.embeddings.engine == "model"
    new = identity_of(settings.embedding_model) if is_model else {"embedding model": embedder.fingerprint}
    names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name) and name != "embedding method")
    return ": " + ", ".join(f"{name} {old.get(name)} -> {new.get(name)}" for name in names) if names else ""
