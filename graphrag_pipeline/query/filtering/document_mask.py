"""Document mask: the records that a search may read under filters, as masks over the rows of the contract tables.

    text unit     passes if its document passes
    claim         passes if its text unit passes
    entity        passes if one of its text units passes
    relationship  passes if one of its text units and both its entities pass
    community,    pass if all text units of the community's entities, and of their relationships and claims, pass; a
    report        report sums up all of them, so a search reads it whole or not at all

An entity or relationship is *whole* if all its text units pass. If it is not whole, its description holds facts of
other documents, so a search does not read it (`restricted_snapshot.py`).

A missing value passes `!=` only. Keep out: the syntax of filters (`filters.py`).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filters import (
    COLUMNS,
    DATED,
    DERIVED,
    Filter,
    Value,
    comparison_of,
    each_value,
    flatten_metadata,
    matcher_of,
    parse_filter,
    read_metadata,
    read_value,
    year_of,
)
from graphrag_pipeline.text.counted import counted

if TYPE_CHECKING:
    from graphrag_pipeline.storage.arrays import Adjacency
    from graphrag_pipeline.storage.snapshots import Snapshot

_MAX_LISTED = 30
_MAX_EXAMPLES = 3


@dataclass(frozen=True)
class StoredField:
    """The values of a field: document i has `values[codes[i]]`, None for a missing value."""

    codes: np.ndarray
    values: Sequence[Any]


class DocumentFields:
    """Fields of the documents, for filters.

    Args:
        documents: the contract table.
    """

    def __init__(self, documents: pa.Table) -> None:
        self._documents = documents
        metadata = self._column("metadata")
        self._codes = metadata.codes
        self._records = [dict(flatten_metadata(read_metadata(text))) for text in metadata.values]
        self._keys = sorted({key for record in self._records for key in record})

    @property
    def names(self) -> list[str]:
        """Names of all fields, those of metadata last."""
        derived = [name for name in DERIVED if name not in self._keys and self._dated]
        return [*COLUMNS, *derived, *(key for key in self._keys if key not in COLUMNS)]

    def mask_of(self, condition: Filter) -> np.ndarray:
        """Return which documents pass, bool (n documents,).

        Raises:
            PipelineError: the field is unknown, or the filter's value cannot be compared with any of its values.
        """
        if not len(self._codes):
            return np.zeros(0, dtype=bool)
        field = self.find(condition)
        wanted = [read_value(value) for value in condition.values]
        held = [[read_value(value) for value in each_value(stored)] for stored in field.values]
        if condition.operator != "~":
            _check_comparable(condition, wanted, held)
        matches = matcher_of(condition.operator, wanted)
        is_found = np.array([any(map(matches, of)) for of in held], dtype=bool)[field.codes]
        return ~is_found if condition.operator == "!=" else is_found

    def stored(self, name: str) -> StoredField:
        """Return the values of a column or metadata key; all are missing if the name is unknown."""
        return self._column(name) if name in COLUMNS else self._of_metadata(name)

    def stored_or_derived(self, name: str) -> StoredField:
        """Return the values of one of `names`; those of `date` and `year` come from the documents' dates."""
        dated = self._dated
        if name in COLUMNS or name in self._keys or dated is None:
            return self.stored(name)
        is_year = name == "year"
        return StoredField(dated.codes, [year_of(value) for value in dated.values]) if is_year else dated

    def find(self, condition: Filter) -> StoredField:
        """Return the values of the field that a filter names.

        Raises:
            PipelineError: the field is unknown.
        """
        name = self._named(condition.field)
        if name in self.names:
            return self.stored_or_derived(name)
        key = name.removeprefix("metadata.")
        if key in self._keys:
            return self._of_metadata(key)
        if name.casefold() in DERIVED:
            raise PipelineError(
                f"filter {condition.text!r}: no document has a date: neither a creation date nor, in its metadata, "
                f"{', '.join(DATED)} or {name.casefold()}{self._near(name)}"
            )
        raise PipelineError(f"filter {condition.text!r}: documents have no field {condition.field!r}{self._near(name)}")

    def _named(self, name: str) -> str:
        """Return the spelling of a field that differs in case only, else the name."""
        folded = [known for known in self.names if known.casefold() == name.casefold()]
        return name if name in self.names or len(folded) != 1 else folded[0]

    def _near(self, name: str) -> str:
        names = self.names
        close = difflib.get_close_matches(name.casefold(), [known.casefold() for known in names], n=1, cutoff=0.6)
        guess = "".join(f"; did you mean {known!r}? There" for known in names if known.casefold() in close)
        more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
        return f"{guess or '; there'} are {', '.join(names[:_MAX_LISTED])}{more}"

    def _of_metadata(self, key: str) -> StoredField:
        return StoredField(self._codes, [record.get(key) for record in self._records])

    def _column(self, name: str) -> StoredField:
        encoded = self._documents[name].combine_chunks().dictionary_encode()
        codes = np.asarray(encoded.indices.fill_null(len(encoded.dictionary)))
        return StoredField(codes, [*encoded.dictionary.to_pylist(), None])

    @property
    def _dated(self) -> StoredField | None:
        """Dates of the documents: the creation date, else the first of `DATED` in the metadata; None without either."""
        if self._documents["creation_date"].null_count < len(self._documents):
            return self._column("creation_date")
        return next((self._of_metadata(key) for key in DATED if key in self._keys), None)


def _check_comparable(condition: Filter, wanted: Sequence[Value], held: Sequence[Sequence[Value]]) -> None:
    test = comparison_of(condition.operator)
    values = list(dict.fromkeys(value for of in held for value in of))
    for other, written in zip(wanted, condition.values, strict=True):
        is_whole = len(wanted) > 1 and written == condition.values[-1]  # "a, b" as a whole may not compare
        if values and not is_whole and all(test(value, other) is None for value in values):
            examples = ", ".join(repr(value.text) for value in values[:_MAX_EXAMPLES])
            raise PipelineError(
                f"filter {condition.text!r}: {written!r} cannot be compared with the values of {condition.field!r}, "
                f"such as {examples}; numbers compare with numbers, dates (2024, 2024-05, 2024-05-31) with dates"
            )


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
