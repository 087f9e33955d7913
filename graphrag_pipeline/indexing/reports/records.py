"""Records of the graph as rows of text with their tokens, for report contexts.

Entities, relationships and claims are positions in the order of their ids, independent of the order of table rows.
Texts are rendered and counted on demand; each record is counted once. Keep out: communities (`community_rows.py`), the
choice of records for a context, writing reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.arrow_columns import one_chunk, positions
from graphrag_pipeline.indexing.reports.display_names import display_names
from graphrag_pipeline.text.tokens import TokenCounter

_ENTITY_COLUMNS = ["id", "title", "type", "names", "description_key"]
_RELATIONSHIP_COLUMNS = ["id", "source_id", "target_id", "description_key"]


@dataclass(frozen=True)
class Record:
    """One row of a context.

    Attributes:
        id: the stable id that a report cites.
        fields: entity: title, description; relationship: source, target, description; claim: subject, object, type,
            status, start date, end date, description. Titles are display names.
    """

    id: str
    fields: tuple[str, ...]

    @property
    def description(self) -> str:
        return self.fields[-1]


class RecordRows:
    """Records of one kind, rendered and counted on demand; each is counted once."""

    def __init__(self, ids: pa.Array, columns: Sequence[pa.Array], count_tokens: TokenCounter) -> None:
        self._ids = ids
        self._columns = columns
        self._count_tokens = count_tokens
        self._tokens = np.full(len(ids), -1, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._ids)

    def record(self, i: int) -> Record:
        return Record(self._ids[i].as_py(), tuple(column[i].as_py() or "" for column in self._columns))

    def iterate_values(self) -> Iterator[tuple[str, ...]]:
        """Yield the id and the fields of each record, in order."""
        columns = [self._ids, *(column.fill_null("") for column in self._columns)]
        return zip(*(column.to_pylist() for column in columns), strict=True)

    def tokens(self, rows: np.ndarray) -> np.ndarray:
        """Count the tokens of each row without its number."""
        missing = rows[self._tokens[rows] < 0]
        if len(missing):
            self._tokens[missing] = self._count_tokens([render_row(self.record(i).fields) for i in missing.tolist()])
        return self._tokens[rows]

    @cached_property
    def max_tokens(self) -> np.ndarray:
        """(n,) upper limit of the tokens of each row: its bytes, as a token has at least one byte."""
        total = np.full(len(self._ids), 1, dtype=np.int64)
        for column in self._columns:
            n_bytes = pc.binary_length(column.cast(pa.binary())).fill_null(0)
            n_quotes = pc.count_substring(column, '"').fill_null(0)
            total += n_bytes.to_numpy(zero_copy_only=False) + n_quotes.to_numpy(zero_copy_only=False) + 3
        return total


class GraphRecords:
    """Records by position, ends of relationships, and claims by entity; positions depend on ids alone."""

    def __init__(
        self,
        entities: pa.Table,
        relationships: pa.Table,
        covariates: pa.Table,
        descriptions: pa.Table,
        count_tokens: TokenCounter,
    ) -> None:
        """Read the stage tables; `count_tokens` counts the tokens of each text of a list."""
        entities = entities.select(_ENTITY_COLUMNS).sort_by("id")
        relationships = relationships.select(_RELATIONSHIP_COLUMNS).sort_by("id")
        covariates = covariates.sort_by("id")
        self.count_tokens = count_tokens
        self.entity_ids = one_chunk(entities["id"])
        titles = one_chunk(entities["title"])
        self._titles = titles
        entity_texts = _look_up(entities["description_key"], descriptions)
        self.names = pa.array(display_names(entities, entity_texts), pa.string())
        self.title_order = _ranks(titles)
        self.sources = positions(relationships["source_id"], self.entity_ids)
        self.targets = positions(relationships["target_id"], self.entity_ids)
        n_entities = max(len(titles), 1)
        self.relationship_order = _ranks(
            pa.array(self.title_order[self.sources] * n_entities + self.title_order[self.targets])
        )
        self.entities = RecordRows(self.entity_ids, [self.names, entity_texts], count_tokens)
        relationship_texts = _look_up(relationships["description_key"], descriptions)
        ends = [self.names.take(pa.array(end)) for end in (self.sources, self.targets)]
        self.relationships = RecordRows(one_chunk(relationships["id"]), [*ends, relationship_texts], count_tokens)
        self._add_claims(covariates)

    def _add_claims(self, covariates: pa.Table) -> None:
        """Assign each claim to its subject or, if that is not an entity, to its object; leave out other claims."""
        # Claims are sorted by owner, so the claims of entity i are [_claim_starts[i], _claim_starts[i + 1]).
        subjects, objects = (pc.index_in(covariates[c], value_set=self._titles) for c in ("subject_id", "object_id"))
        owners = one_chunk(pc.coalesce(subjects, objects)).fill_null(-1).to_numpy(zero_copy_only=False)
        order = np.argsort(owners, kind="stable")
        order = order[owners[order] >= 0]
        covariates, owners = covariates.take(pa.array(order)), owners[order]
        columns = [
            self._name(covariates["subject_id"]),
            self._name(covariates["object_id"]),
            *(one_chunk(covariates[c]) for c in ("type", "status", "start_date", "end_date")),
            _fold_space(one_chunk(covariates["description"])),
        ]
        self.claims = RecordRows(one_chunk(covariates["id"]), columns, self.count_tokens)
        self.claim_owners = owners.astype(np.int64)
        self._claim_starts = np.searchsorted(owners, np.arange(len(self.entity_ids) + 1))

    def _name(self, titles: pa.ChunkedArray) -> pa.Array:
        found = pc.index_in(titles, value_set=self._titles)
        return one_chunk(pc.coalesce(self.names.take(one_chunk(found)), one_chunk(titles)))

    def claims_of(self, entities: np.ndarray) -> np.ndarray:
        """Return the positions of the claims of entities, in the order of the entities."""
        starts, ends = self._claim_starts[entities], self._claim_starts[entities + 1]
        has_claims = ends > starts
        ranges = [np.arange(s, e) for s, e in zip(starts[has_claims], ends[has_claims], strict=True)]
        return np.concatenate(ranges) if ranges else np.zeros(0, dtype=np.int64)


def render_row(fields: Sequence[str]) -> str:
    """Render a CSV row without its number. It starts with a comma and ends its line, so that token counts add up."""
    return "".join(f",{_quote(field)}" for field in fields) + "\n"


def _quote(field: str) -> str:
    return '"' + field.replace('"', '""') + '"' if re.search(r'[",\r\n]', field) else field


# ------------------------------------------------------------------------------------------------- columns as arrays


def _look_up(keys: pa.ChunkedArray, descriptions: pa.Table) -> pa.Array:
    """Return the description of each key with white space folded; "" without one."""
    found = one_chunk(pc.index_in(keys, value_set=one_chunk(descriptions["description_key"])))
    return _fold_space(one_chunk(descriptions["description"]).take(found).fill_null(""))


def _fold_space(texts: pa.Array) -> pa.Array:
    is_uneven = pc.match_substring_regex(texts, r"\s\s|[\t\n\f\r]")  # a tenth of the time of replacing in all texts
    if pc.any(is_uneven).as_py():
        folded = pc.replace_substring_regex(texts.filter(is_uneven), r"\s+", " ")
        texts = pc.replace_with_mask(texts, is_uneven, folded)
    return pc.utf8_trim_whitespace(texts)


def _ranks(values: pa.Array) -> np.ndarray:
    """Return the position of each value in sorted order."""
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[pc.sort_indices(values).to_numpy()] = np.arange(len(values))
    return ranks
