"""A view of a snapshot that is restricted to the records that pass a document mask.

Rows keep their numbers. Vector and full-text search, adjacency and the mention graph lead only to rows that pass, and
reading another record is an error. So every search method obeys filters without code for them.

If an entity or relationship is also in other documents, its stored description may hold their facts. It is replaced by
sentences of the text units that pass: those that name the entity, or both entities of the relationship. It is "" if no
sentence does. Title, type, weight, rank and vector are those of the whole index. Whole columns (`table`, `sentences`)
are not restricted: a step that reads all rows applies `document_mask` itself.

Descriptions of entities and relationships from verbatim sentences of the text units that pass a filter.

Keep out: the choice of records
(`document_mask.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.filtering.document_mask import DocumentMask
from graphrag_pipeline.storage.arrays import Adjacency, ArrayFolder, Sentences, expand_rows
from graphrag_pipeline.storage.mentions import Mentions
from graphrag_pipeline.storage.sentence_means import SentenceMeans
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.tables import VECTOR_TABLES
from graphrag_pipeline.text.tokens import count_tokens_each

if TYPE_CHECKING:
    from graphrag_pipeline.storage.snapshots import Snapshot
    from graphrag_pipeline.storage.vectors.stores import ScoredIds, VectorCollection, VectorRecord, Where

MAX_UNITS = 8
"""Most text units that are read for one description."""
MAX_SENTENCES = 3
"""Most sentences of one description."""


def describe_by_text_units(snapshot: Snapshot, table: str, row: int, max_tokens: int) -> str:
    """Return the first sentence of each text unit that names an entity, or both entities of a relationship.

    Args:
        snapshot: restricted, so its adjacency and mentions lead to text units that pass only.
        table: entities or relationships.

    Returns:
        At most `MAX_SENTENCES` sentences and `max_tokens` tokens, joined by spaces; "" if no sentence names them.
    """
    if not snapshot.manifest.sentences:
        return ""
    if table == "entities":
        entities = [row]
        units = _units_about_first(snapshot, row)
    else:
        entities = [int(snapshot.adjacency.array(f"relationship_{end}")[row]) for end in ("source", "target")]
        units = snapshot.adjacency.of("relationship_text_units", row)[:MAX_UNITS].tolist()
    sentences = dict.fromkeys(filter(None, (_read_sentence(snapshot, unit, entities) for unit in units)))
    taken: list[str] = []
    left = max_tokens
    for sentence, n_tokens in zip(sentences, count_tokens_each(list(sentences)), strict=True):
        if n_tokens < left and len(taken) < MAX_SENTENCES:
            taken.append(sentence)
            left -= n_tokens + 1
    return " ".join(taken)


def _units_about_first(snapshot: Snapshot, entity: int) -> list[int]:
    """Return the rows of the first text units of an entity; those whose document is about it come first."""
    mentions = snapshot.mentions
    of_entity = slice(*mentions.entity_indptr[entity : entity + 2])
    about = slice(*mentions.about_indptr[entity : entity + 2])
    edges = np.r_[mentions.about_edges[about][:MAX_UNITS], mentions.entity_edges[of_entity][:MAX_UNITS]]
    return list(dict.fromkeys(mentions.text_units[edges.astype(np.int64)].tolist()))[:MAX_UNITS]


def _read_sentence(snapshot: Snapshot, unit: int, entities: list[int]) -> str:
    """Return the first sentence of a text unit that names all given entities, on one line; "" if none does."""
    sentences = snapshot.sentences
    first, last = sentences.indptr[unit : unit + 2].tolist()
    starts = sentences.starts[first:last]
    naming = [{int(n) for n in np.searchsorted(starts, _places(snapshot, unit, e), "right") - 1} for e in entities]
    common = sorted(set.intersection(*naming) - {-1})
    if not common:
        return ""
    [record] = snapshot.take("text_units", [unit], ["text"])
    start, end = int(starts[common[0]]), int(sentences.ends[first + common[0]])
    return " ".join(record["text"][start:end].split())


def _places(snapshot: Snapshot, unit: int, entity: int) -> np.ndarray:
    """Return the character offsets of an entity's names in a text unit."""
    mentions = snapshot.mentions
    first, last = mentions.unit_indptr[unit : unit + 2].tolist()
    edges = first + np.flatnonzero(mentions.entities[first:last] == entity)
    spans = [slice(*mentions.places_indptr[edge : edge + 2]) for edge in edges.tolist()]
    return np.concatenate([mentions.starts[span] for span in spans]) if spans else np.zeros(0, dtype=np.int32)


MAX_IDS = 2_000
"""Most passing rows whose ids a vector search gets as a list; with more, it fetches extra rows and filters them."""
N_MORE = 2
"""Factor of extra rows to fetch, over the number that holds k passing rows on average."""


class RestrictedSnapshot(Snapshot):
    """The part of an opened snapshot that passes a document mask; it stays open as long as the snapshot.

    Args:
        whole: the snapshot; the view shares the data that it has loaded.
    """

    def __init__(self, whole: Snapshot, document_mask: DocumentMask) -> None:
        super().__init__(whole.folder, whole.id, whole.manifest, whole._vector_settings)
        self._tables, self._columns, self._numbers = whole._tables, whole._columns, whole._numbers
        self._whole = whole
        self._descriptions: dict[tuple[str, int], str] = {}
        self.document_mask = document_mask

    def vectors(self, name: str) -> VectorCollection:
        """Return a vector table in which a search finds only rows that pass."""
        table = VECTOR_TABLES[name][0]
        return MaskedVectors(self._whole.vectors(name), self._whole, table, self.document_mask.masks[table])

    @functools.cached_property
    def adjacency(self) -> Adjacency:
        return RestrictedAdjacency(self._whole.adjacency, self.document_mask.masks)

    @functools.cached_property
    def mentions(self) -> Mentions:
        return Mentions(restrict_mentions(self._whole.mentions, self.document_mask.masks["text_units"]))

    @functools.cached_property
    def sentences(self) -> Sentences:
        return self._whole.sentences

    @functools.cached_property
    def sentence_means(self) -> SentenceMeans:
        return self._whole.sentence_means

    def take_columns(self, name: str, rows: np.ndarray | list[int], columns: list[str]) -> list[list[Any]]:
        """Return the values of some rows; `take` reads by it, too.

        Raises:
            PipelineError: a row does not pass.
        """
        wanted = np.asarray(rows, dtype=np.int64)
        mask = self.document_mask.masks.get(name)
        refused = wanted[~mask[wanted]] if mask is not None else wanted[:0]
        if len(refused):
            raise PipelineError(f"{name}: row {refused[0]} does not pass {' and '.join(self.document_mask.filters)}")
        found = self._whole.take_columns(name, wanted, columns)
        if name in self.document_mask.whole and "description" in columns:
            is_whole = self.document_mask.whole[name]
            place = columns.index("description")
            found[place] = [
                text if is_whole[row] else self._describe(name, row, text or "")
                for row, text in zip(wanted.tolist(), found[place], strict=True)
            ]
        return found

    def _describe(self, name: str, row: int, stored: str) -> str:
        """Return a description of at most as many tokens as the stored one, which `n_tokens` of the record counts."""
        if (name, row) not in self._descriptions:
            [max_tokens] = count_tokens_each([stored])
            self._descriptions[name, row] = describe_by_text_units(self, name, row, max_tokens)
        return self._descriptions[name, row]


# ------------------------------------------------------------------------------------------------------------- vectors


class MaskedVectors:
    """A vector collection in which a search finds only rows that pass; k of them if so many pass.

    Args:
        mask: bool (n rows of `table`,).
    """

    def __init__(self, vectors: VectorCollection, snapshot: Snapshot, table: str, mask: np.ndarray) -> None:
        self._all = vectors
        self._snapshot = snapshot
        self._table = table
        self._mask = mask
        self._n_passing = int(mask.sum())

    def search(
        self, vector: np.ndarray, k: int, ids: Collection[str] | None = None, where: Where | None = None
    ) -> ScoredIds:
        if ids is not None or self._are_few:
            among = self._among(ids)
            return self._all.search(vector, k, among, where) if among else []
        for n_wanted in self._wider(k):
            found = self._keep_scored(self._all.search(vector, n_wanted, None, where))
            if len(found) >= k:
                return found[:k]
        return self._all.search(vector, k, self.ids(), where)

    def search_text(
        self, query: str, k: int, ids: Collection[str] | None = None, where: Where | None = None
    ) -> ScoredIds:
        if ids is not None or self._are_few:
            among = self._among(ids)
            return self._all.search_text(query, k, among, where) if among else []
        for n_wanted in self._wider(k):
            near = self._all.search_text(query, n_wanted, None, where)
            found = self._keep_scored(near)
            if len(found) >= k or len(near) < n_wanted:  # fewer: no other row contains a word of the query
                return found[:k]
        return self._all.search_text(query, k, self.ids(), where)

    def begin_search(self, vector: np.ndarray, k: int) -> Callable[[], ScoredIds]:
        return functools.partial(self.search, vector, k)

    def begin_search_text(self, query: str, k: int) -> Callable[[], ScoredIds]:
        return functools.partial(self.search_text, query, k)

    @property
    def _are_few(self) -> bool:
        return self._n_passing <= MAX_IDS

    def _among(self, ids: Collection[str] | None) -> list[str]:
        return self.ids() if ids is None else self._keep(list(ids))

    def _wider(self, k: int) -> Iterator[int]:
        """Yield growing numbers of rows to fetch until k of them pass, up to a quarter of the table."""
        n_wanted = N_MORE * (k * len(self._mask) // self._n_passing + 1)
        while n_wanted <= max(len(self._mask) // 4, k):
            yield n_wanted
            n_wanted *= 4

    def _keep_scored(self, near: ScoredIds) -> ScoredIds:
        kept = set(self._keep([record_id for record_id, _ in near]))
        return [(record_id, score) for record_id, score in near if record_id in kept]

    def _keep(self, ids: Sequence[str]) -> list[str]:
        rows = self._snapshot.rows_of(self._table, list(ids))
        return [record_id for record_id, row in zip(ids, rows.tolist(), strict=True) if row >= 0 and self._mask[row]]

    def count(self, where: Where | None = None) -> int:
        return self._all.count(where) if where else self._n_passing

    def ids(self) -> list[str]:
        ids: list[str] = self._snapshot.table(self._table)["id"].filter(pa.array(self._mask)).to_pylist()
        return ids

    def get(self, ids: Sequence[str]) -> list[VectorRecord]:
        return self._all.get(self._keep(ids))

    def vectors(self, ids: Sequence[str]) -> np.ndarray:
        return self._all.vectors(ids)

    def close(self) -> None:
        """Do nothing: the whole snapshot closes the collection."""


# ---------------------------------------------------------------------------------------------------------- adjacency

_LEADS_TO = {
    "entity_relationships": "relationships",
    "entity_text_units": "text_units",
    "entity_communities": "communities",
    "entity_covariates": "covariates",
    "relationship_text_units": "text_units",
    "text_unit_entities": "entities",
    "text_unit_relationships": "relationships",
}


class RestrictedAdjacency(Adjacency):
    """Adjacency that leads only to rows that pass; the arrays themselves are not restricted."""

    def __init__(self, whole: Adjacency, masks: Mapping[str, np.ndarray]) -> None:
        self._whole = whole
        self._masks = masks

    def array(self, name: str) -> np.ndarray:
        return self._whole.array(name)

    def has(self, name: str) -> bool:
        return self._whole.has(name)

    def close(self) -> None:
        """Do nothing: the whole snapshot closes its arrays."""

    def of(self, relation: str, row: int) -> np.ndarray:
        found = self._whole.of(relation, row)
        return found[self._masks[_LEADS_TO[relation]][found]]

    def of_all(self, relation: str, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        positions, found = self._whole.of_all(relation, rows)
        is_kept = self._masks[_LEADS_TO[relation]][found]
        return positions[is_kept], found[is_kept]

    def counts(self, relation: str) -> np.ndarray:
        n_rows = len(self._whole.counts(relation))
        return np.bincount(self.of_all(relation, np.arange(n_rows))[0], minlength=n_rows)


class _Arrays(ArrayFolder):
    """Arrays in memory."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self._arrays = arrays


def restrict_mentions(whole: Mentions, text_units: np.ndarray) -> ArrayFolder:
    """Return the arrays of the mention graph without the edges of text units that do not pass.

    Args:
        text_units: which text units pass, bool (n text units,).
    """
    is_kept = text_units[whole.text_units]
    renumbered = np.cumsum(is_kept) - 1
    places = np.flatnonzero(is_kept)
    _, of_places = expand_rows(whole.places_indptr, places)
    entity_indptr, entity_edges = _keep_edges(whole.entity_indptr, whole.entity_edges, is_kept, renumbered)
    about_indptr, about_edges = _keep_edges(whole.about_indptr, whole.about_edges, is_kept, renumbered)
    before = np.r_[0, np.cumsum(is_kept)]
    return _Arrays(
        {
            "text_unit_mentions_indptr": before[whole.unit_indptr],
            "entity_mentions_indptr": entity_indptr,
            "entity_mentions_indices": entity_edges,
            "entity_about_indptr": about_indptr,
            "entity_about_indices": about_edges,
            "mention_entities": whole.entities[is_kept],
            "mention_text_units": whole.text_units[is_kept],
            "mention_is_about": whole.is_about[is_kept],
            "mention_places_indptr": np.r_[0, np.cumsum(np.diff(whole.places_indptr)[places])],
            "mention_starts": whole.starts[of_places],
            "mention_ends": whole.ends[of_places],
        }
    )


def _keep_edges(
    indptr: np.ndarray, edges: np.ndarray, is_kept: np.ndarray, renumbered: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    kept = is_kept[edges]
    return np.r_[0, np.cumsum(kept)][indptr], renumbered[edges[kept]].astype(edges.dtype)
