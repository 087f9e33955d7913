"""Choice of the records that a community report is written from, within a token budget (Edge et al. 2024, 2404.16130).

`build_context` chooses, within `max_input_tokens`, the first of these that fits:

- All records. Relationships come by the degree of their ends inside the community, highest first, ties by title.
- All records after a roll-up: sub-communities are replaced by their reports, largest first, until the rest fits.
- If every sub-community is replaced: their reports within `REPORTS_SHARE` of the budget, shortened if necessary; then
  each relationship that still fits, with its entities and, within `CLAIMS_SHARE`, their claims; then other records.

A context contains no global figure (degree, rank, frequency, weight), and it numbers its records from 1. So the context
of a community does not change when other parts of the graph do. Its key covers the text and the ids behind the numbers.

If the number of bytes shows that a community fits, no tokens are counted. Keep out: the text of a context
(`context_text.py`), writing reports, prompts, disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from graphrag_pipeline.citations import number_citations
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.indexing.reports.community_rows import CommunityRows
from graphrag_pipeline.indexing.reports.context_text import (
    ChildReport,
    find_cited_ids,
    name_central,
    number_records,
    render_frame,
    render_text,
)
from graphrag_pipeline.indexing.reports.display_names import is_common_noun
from graphrag_pipeline.indexing.reports.records import GraphRecords, Record, RecordRows, render_row

LEAST_RECORD_TOKENS = 100
"""Tokens of records without which a context is not worth a report."""
REPORTS_SHARE = 0.75
CLAIMS_SHARE = 0.25

_MIN_ROW_TOKENS = 4
_LONG_NUMBERS = 1000  # from this number on, a record number can take two tokens


@dataclass(frozen=True)
class CommunityContext:
    """The whole input of a report.

    Attributes:
        community_id, level: of the community; not part of the text.
        n_entities, n_relationships, n_claims: numbers inside the community, shown or not.
        central: titles of the entities with most relationships inside, at most `N_CENTRAL`, names before common nouns.
        common_nouns: titles inside that are one common noun, shown or not, sorted.
        entities, relationships, claims, reports: the records shown, in order.
        numbers: kind of citation -> stable id -> number in the text.
        text: the tables of a prompt.
        shorten: returns the context within so many tokens less; None if it cannot be so short.
        context_key: hash of the text, of the ids behind its numbers and of the common nouns.
    """

    community_id: str
    level: int
    n_entities: int
    n_relationships: int
    n_claims: int
    central: tuple[str, ...]
    common_nouns: tuple[str, ...]
    entities: tuple[Record, ...]
    relationships: tuple[Record, ...]
    claims: tuple[Record, ...]
    reports: tuple[ChildReport, ...]
    numbers: Mapping[str, Mapping[str, int]]
    text: str
    shorten: Callable[[int], CommunityContext | None] = field(default=lambda _: None, compare=False, repr=False)

    @property
    def context_key(self) -> str:
        ids = [part for kind, listed in self.numbers.items() for part in (kind, *listed)]
        return stable_hash("context", self.text, *ids, "nouns", *self.common_nouns)


def build_context(
    community: CommunityRows,
    records: GraphRecords,
    reports: Mapping[str, ChildReport],
    max_input_tokens: int,
) -> CommunityContext:
    """Choose and render the records for the report on a community.

    Args:
        community: from `iterate_levels`.
        records: the whole graph.
        reports: reports of the sub-communities, by community id.
        max_input_tokens: upper limit of the rendered text.
    """
    packing = _Packing(community, records, reports, max_input_tokens)
    entities, relationships, claims, shown = packing.choose()
    context = _render(community, records, entities, relationships, claims, shown)

    def shorten(n_tokens: int) -> CommunityContext | None:
        least = records.count_tokens([render_frame(community, records)])[0] + LEAST_RECORD_TOKENS
        budget = records.count_tokens([context.text])[0] - n_tokens
        return build_context(community, records, reports, budget) if budget >= least else None

    return replace(context, shorten=shorten)


_Choice = tuple[np.ndarray, np.ndarray, np.ndarray, list[ChildReport]]


class _Packing:
    """The choice of records for one context; entities, relationships and claims are positions in `GraphRecords`."""

    def __init__(
        self,
        community: CommunityRows,
        records: GraphRecords,
        reports: Mapping[str, ChildReport],
        max_input_tokens: int,
    ) -> None:
        self.community = community
        self.records = records
        self.reports = [reports[child] for child in community.children]
        self.budget = max_input_tokens - records.count_tokens([render_frame(community, records)])[0]
        n_numbers = len(community.entities) + len(community.relationships) + len(community.claims)
        self.number_tokens = 1 if n_numbers + len(self.reports) < _LONG_NUMBERS else 2
        self._counted: dict[ChildReport, int] = {}

    def choose(self) -> _Choice:
        """Choose all records, or replace as few sub-communities as possible, or choose those records that fit."""
        order = self._largest_first()
        for n_replaced in range(len(order) + 1):
            shown = [self.reports[child] for child in order[:n_replaced]]
            rows = self._keep_outside(order[:n_replaced])
            if self._fits(rows, shown):
                return (*rows, shown)
        return self._pack(self._keep_outside(order), [self.reports[child] for child in order])

    def _largest_first(self) -> list[int]:
        """Order the sub-communities by the bytes of their records, largest first."""
        community, records = self.community, self.records
        size = np.zeros(len(community.children))
        for rows, held, child_of in (
            (records.entities, community.entities, community.child_of_entity),
            (records.relationships, community.relationships, community.child_of_relationship),
            (records.claims, community.claims, community.child_of_claim),
        ):
            inside = child_of >= 0
            size += np.bincount(child_of[inside], rows.max_tokens[held[inside]], minlength=len(size))
        return sorted(range(len(size)), key=lambda child: (-size[child], community.children[child]))

    def _keep_outside(self, replaced: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the records outside replaced sub-communities."""
        community = self.community
        is_replaced = np.zeros(len(community.children) + 1, dtype=bool)  # -1 reads the last value
        is_replaced[list(replaced)] = True
        return (
            community.entities[~is_replaced[community.child_of_entity]],
            community.relationships[~is_replaced[community.child_of_relationship]],
            community.claims[~is_replaced[community.child_of_claim]],
        )

    def _fits(self, rows: tuple[np.ndarray, np.ndarray, np.ndarray], shown: Sequence[ChildReport]) -> bool:
        kinds = (self.records.entities, self.records.relationships, self.records.claims)
        n_rows = sum(map(len, rows))
        if n_rows * _MIN_ROW_TOKENS > self.budget:
            return False
        left = self.budget - n_rows * self.number_tokens - sum(self._report_tokens(report) for report in shown)
        if sum(int(kind.max_tokens[held].sum()) for kind, held in zip(kinds, rows, strict=True)) <= left:
            return True
        return sum(int(kind.tokens(held).sum()) for kind, held in zip(kinds, rows, strict=True)) <= left

    def _report_tokens(self, report: ChildReport) -> int:
        """Count the tokens of a report's row, with the longest numbers that its citations can get."""
        if report in self._counted:
            return self._counted[report]
        cited = {kind: dict.fromkeys(ids, _LONG_NUMBERS) for kind, ids in find_cited_ids(report).items()}
        row = render_row((report.title, number_citations(report.text, _spread(cited))))
        self._counted[report] = self.records.count_tokens([row])[0] + self.number_tokens
        return self._counted[report]

    def _pack(self, rows: tuple[np.ndarray, np.ndarray, np.ndarray], reports: Sequence[ChildReport]) -> _Choice:
        """Choose the records that fit if not all of them do."""
        shown, left = self._pack_reports(reports)
        entities, relationships, claims = rows
        left, relationships, used, shown_claims = self._pack_relationships(entities, relationships, claims, left)
        left, used = self._add_rows(self.records.entities, entities, used, left)
        has_owner = np.isin(self.records.claim_owners[claims], list(used))
        _, shown_claims = self._add_rows(self.records.claims, claims[has_owner], shown_claims, left)
        return (
            entities[np.isin(entities, list(used))],
            relationships,
            claims[np.isin(claims, list(shown_claims))],
            shown,
        )

    def _pack_reports(self, reports: Sequence[ChildReport]) -> tuple[list[ChildReport], int]:
        """Choose short reports of as many sub-communities as fit, then replace them by whole reports if these fit."""
        limit = int(self.budget * REPORTS_SHARE)
        shown: dict[str, ChildReport] = {}
        spent = 0
        for report in reports:
            tokens = self._report_tokens(report.shortened())
            if spent + tokens <= limit:
                shown[report.community_id] = report.shortened()
                spent += tokens
        for report in reports:
            if report.community_id in shown:
                more = self._report_tokens(report) - self._report_tokens(report.shortened())
                if spent + more <= limit:
                    shown[report.community_id] = report
                    spent += more
        return list(shown.values()), self.budget - spent

    def _pack_relationships(
        self, entities: np.ndarray, relationships: np.ndarray, claims: np.ndarray, left: int
    ) -> tuple[int, np.ndarray, set[int], set[int]]:
        """Choose each relationship that fits with its entities, and the entities' claims up to their share.

        Returns:
            tokens left, chosen relationships, chosen entities, chosen claims.
        """
        records = self.records
        entity_tokens = dict(zip(entities.tolist(), records.entities.tokens(entities).tolist(), strict=True))
        claim_tokens = dict(zip(claims.tolist(), records.claims.tokens(claims).tolist(), strict=True))
        claims_left = int(self.budget * CLAIMS_SHARE)
        taken: list[int] = []
        used: set[int] = set()
        shown_claims: set[int] = set()
        tokens = records.relationships.tokens(relationships)
        for row, own_tokens in zip(relationships.tolist(), tokens.tolist(), strict=True):
            ends = {int(records.sources[row]), int(records.targets[row])} - used
            new = [end for end in sorted(ends) if end in entity_tokens]
            needed = own_tokens + self.number_tokens + sum(entity_tokens[end] + self.number_tokens for end in new)
            if needed > left:
                continue
            taken.append(row)
            used.update(new)
            left -= needed
            for claim in records.claims_of(np.array(new, dtype=np.int64)).tolist():
                more = claim_tokens[claim] + self.number_tokens
                if more <= min(left, claims_left):
                    shown_claims.add(claim)
                    left -= more
                    claims_left -= more
        return left, np.array(taken, dtype=np.int64), used, shown_claims

    def _add_rows(self, kind: RecordRows, rows: np.ndarray, taken: set[int], left: int) -> tuple[int, set[int]]:
        """Add the rows that still fit, in order; return the tokens left and all chosen rows."""
        taken = set(taken)
        rows = rows[~np.isin(rows, list(taken))]
        for row, tokens in zip(rows.tolist(), kind.tokens(rows).tolist(), strict=True):
            if tokens + self.number_tokens <= left:
                taken.add(row)
                left -= tokens + self.number_tokens
        return left, taken


def _spread(cited: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Make the numbers distinct, since equal numbers in a citation would be merged."""
    return {kind: {record: first + i for i, (record, first) in enumerate(ids.items())} for kind, ids in cited.items()}


def _render(
    community: CommunityRows,
    records: GraphRecords,
    entities: np.ndarray,
    relationships: np.ndarray,
    claims: np.ndarray,
    shown: Sequence[ChildReport],
) -> CommunityContext:
    kinds = ((records.entities, entities), (records.relationships, relationships), (records.claims, claims))
    tables = tuple(tuple(rows.record(i) for i in held.tolist()) for rows, held in kinds)
    numbers = number_records(tables, shown)
    return CommunityContext(
        community_id=community.id,
        level=community.level,
        n_entities=len(community.entities),
        n_relationships=len(community.relationships),
        n_claims=len(community.claims),
        central=name_central(community, records),
        common_nouns=tuple(
            sorted(filter(is_common_noun, records.names.take(pa.array(community.entities)).to_pylist()))
        ),
        entities=tables[0],
        relationships=tables[1],
        claims=tables[2],
        reports=tuple(shown),
        numbers=numbers,
        text=render_text(community, records, tables, shown, numbers),
    )
