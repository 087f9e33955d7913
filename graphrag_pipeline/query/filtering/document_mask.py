"""Document mask: the records that a search may read under filters, as masks over the rows of the contract tables.

    text unit     passes if its document passes
    claim         passes if its text unit passes
    entity        passes if one of its text units passes
    relationship  passes if one of its text units and both its entities pass
    community,    pass if all text units of the community's entities, and of their relationships and claims, pass; a
    report        report sums up all of them, so a search reads it whole or not at all

An entity or relationship is *whole* if all its text units pass. If it is not whole, its description holds facts of
other documents, so a search does not read it (`restricted_snapshot.py`). Keep out: the syntax of filters
(`filters.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.filters import parse_filter
from graphrag_pipeline.query.filtering.document_fields import DocumentFields
from graphrag_pipeline.text.counted import counted

if TYPE_CHECKING:
    from graphrag_pipeline.storage.arrays import Adjacency
    from graphrag_pipeline.storage.snapshots import Snapshot


@dataclass(frozen=True)
class DocumentMask:
    """The records that pass some filters.

    Attributes:
        filters: in the words of the user.
        alone: number of documents that pass each filter alone.
        masks: table -> bool (n rows,); for documents, text_units, entities, relationships, covariates, communities and
            community_reports.
        whole: table -> bool (n rows,), for entities and relationships: all their text units pass.
    """

    filters: tuple[str, ...]
    alone: tuple[int, ...]
    masks: Mapping[str, np.ndarray]
    whole: Mapping[str, np.ndarray]

    @property
    def n_documents(self) -> int:
        return int(self.masks["documents"].sum())

    def account(self) -> dict[str, Any]:
        """Return the account of the filters for a search result."""
        return {"filters": list(self.filters), "documents_passing": self.n_documents}

    def describe_no_match(self) -> str:
        """Return the message that no document passes, with the number that pass each filter alone."""
        alone = ", ".join(f"{text}: {n:,}" for text, n in zip(self.filters, self.alone, strict=True))
        each = f" Passing each alone: {alone}." if len(self.filters) > 1 else ""
        n_looked_at = len(self.masks["documents"])
        return f"No document passes {' and '.join(self.filters)} ({counted(n_looked_at, 'documents')} looked at).{each}"


def document_rows(snapshot: Snapshot) -> np.ndarray:
    """Return the row of each text unit's document, int64 (n text units,); -1 if an import has none."""
    return _positions(snapshot.table("text_units")["document_id"], snapshot.table("documents")["id"])


def find_document_mask(
    snapshot: Snapshot, fields: DocumentFields, of_document: np.ndarray, filters: Sequence[str]
) -> DocumentMask:
    """Return the mask of the records that pass all filters.

    Args:
        fields: of the snapshot's documents.
        of_document: row of each text unit's document, from `document_rows`.

    Raises:
        PipelineError: a filter cannot be parsed, its field is unknown, or its value cannot be compared.
    """
    each = [fields.mask_of(parse_filter(text)) for text in filters]
    masks, whole = mask_records(snapshot, of_document, np.logical_and.reduce(each))
    return DocumentMask(tuple(filters), tuple(int(mask.sum()) for mask in each), masks, whole)


def mask_records(
    snapshot: Snapshot, of_document: np.ndarray, documents: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return `DocumentMask.masks` and `DocumentMask.whole` for the documents that pass.

    Args:
        documents: bool (n documents,).
    """
    adjacency = snapshot.adjacency
    # The appended False is what row -1 (no document, no text unit) reads.
    text_units = np.r_[documents, False][of_document]
    claim_units = _positions(snapshot.table("covariates")["text_unit_id"], snapshot.table("text_units")["id"])
    claims = np.r_[text_units, False][claim_units]
    entities, whole_entities = _any_and_all(adjacency, "entity_text_units", text_units)
    stated, whole_relationships = _any_and_all(adjacency, "relationship_text_units", text_units)
    ends = [adjacency.array("relationship_source"), adjacency.array("relationship_target")]
    relationships = stated & entities[ends[0]] & entities[ends[1]]
    communities = _mask_communities(
        adjacency, {"entity_relationships": whole_relationships, "entity_covariates": claims}, whole_entities,
        snapshot.n_rows("communities"),
    )  # fmt: skip
    masks = {
        "documents": documents,
        "text_units": text_units,
        "covariates": claims,
        "entities": entities,
        "relationships": relationships,
        "communities": communities,
        "community_reports": _mask_reports(snapshot, communities),
    }
    return masks, {"entities": whole_entities, "relationships": whole_relationships & relationships}


def _any_and_all(adjacency: Adjacency, relation: str, passes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each row whether any, and whether all of its related rows pass; False without related rows.

    Args:
        passes: bool, over the rows that the relation leads to.
    """
    # before[indptr[i + 1]] - before[indptr[i]] counts the passing rows related to row i.
    indptr = adjacency.array(f"{relation}_indptr")
    before = np.r_[0, np.cumsum(passes[adjacency.array(f"{relation}_indices")])]
    n_passing, n_related = np.diff(before[indptr]), np.diff(indptr)
    return n_passing > 0, (n_passing == n_related) & (n_related > 0)


def _mask_communities(
    adjacency: Adjacency, others: Mapping[str, np.ndarray], whole_entities: np.ndarray, n_communities: int
) -> np.ndarray:
    """Return which communities pass, bool (n communities,).

    All entities of such a community are whole, and so are all rows that the relations in `others` lead to from them.
    """
    # A community passes if it has members and none of them is unclean: two counts per community by `bincount`.
    clean = whole_entities.copy()
    for relation, passes in others.items():
        clean &= ~_any_and_all(adjacency, relation, ~passes)[0]
    members = adjacency.array("entity_communities_indices")
    is_clean = np.repeat(clean, np.diff(adjacency.array("entity_communities_indptr")))
    n_members = np.bincount(members, minlength=n_communities)
    return (n_members > 0) & (np.bincount(members[~is_clean], minlength=n_communities) == 0)


def _mask_reports(snapshot: Snapshot, communities: np.ndarray) -> np.ndarray:
    rows = _positions(snapshot.table("community_reports")["community"], snapshot.table("communities")["community"])
    return np.r_[communities, False][rows]


def _positions(values: pa.ChunkedArray, keys: pa.ChunkedArray) -> np.ndarray:
    """Return the row of each value among keys, -1 for an unknown value: int64."""
    found = pc.index_in(values.combine_chunks(), value_set=keys.combine_chunks())
    return np.asarray(pc.fill_null(found, -1)).astype(np.int64)
