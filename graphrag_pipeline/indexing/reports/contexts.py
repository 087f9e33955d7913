"""What a community report is written from: the records inside a community, within a token budget.

`build_context` takes, within `max_input_tokens`:

- everything, if it fits: relationships by their degree inside the community, highest first, ties by title, with their
  entities and claims;
- else the roll-up: sub-communities are replaced, largest first, by their reports until the rest fits;
- else, with no sub-community left to replace, their reports (short where they must be, within `REPORTS_SHARE` of the
  budget), then every relationship that still fits, with its entities and, within `CLAIMS_SHARE`, their claims, then
  whatever else fits.

A context holds no global figure (degree, rank, frequency, weight) and numbers its records from 1, so that an untouched
community keeps its context, whatever happens elsewhere. Its key covers the text and the ids behind the numbers.

Nothing is counted where the number of bytes already says that a community fits. Keep out: how a report is written,
prompts, disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
import pyarrow as pa

from graphrag_pipeline.citations import number_citations, parse_citations, render_full_content
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.indexing.reports.records import (
    CommunityRows,
    GraphRecords,
    Record,
    RecordRows,
    is_common_noun,
    render_row,
)

REPORTS_SHARE = 0.75
CLAIMS_SHARE = 0.25
N_CENTRAL = 3
MAX_CENTRAL_CANDIDATES = 20
COMMON_NOUN_SHARE = 1 / 3
"""What a relationship of a common noun counts for when central entities are chosen; behind two names it is left out."""

_MIN_ROW_TOKENS = 4
_LONG_NUMBERS = 1000  # from here on a record number may take two tokens
_COMMUNITY_HEADER = "-----Community-----\nentities,relationships,claims,central entities\n"
_REPORTS_HEADER = "-----Reports-----\nid,title,report\n"
_ENTITIES_HEADER = "-----Entities-----\nid,title,description\n"
_RELATIONSHIPS_HEADER = "-----Relationships-----\nid,source,target,description\n"
_CLAIMS_HEADER = "-----Claims-----\nid,subject,object,type,status,start date,end date,description\n"


@dataclass(frozen=True)
class ChildReport:
    """The report of a sub-community; its texts cite stable ids. A short one carries its summary alone."""

    community_id: str
    title: str
    summary: str
    findings: tuple[tuple[str, str], ...]

    def shortened(self) -> ChildReport:
        return ChildReport(self.community_id, self.title, self.summary, ())

    @property
    def text(self) -> str:
        findings = [{"summary": heading, "explanation": explanation} for heading, explanation in self.findings]
        return render_full_content(self.title, self.summary, findings)


@dataclass(frozen=True)
class CommunityContext:
    """All that a report may be made of.

    Attributes:
        community_id, level: of the community; not in the text.
        n_entities, n_relationships, n_claims: inside the community, shown or not.
        central: titles of the entities with most relationships inside, at most `N_CENTRAL`, names before common nouns.
        common_nouns: titles inside that are one common noun, shown or not, sorted.
        entities, relationships, claims, reports: what is shown, in order.
        numbers: kind of citation -> stable id -> its number in the text.
        text: the tables of a prompt.
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
    """Choose and render what the report of a community is written from.

    Args:
        community: from `iterate_levels`.
        records: the graph it is part of.
        reports: of its sub-communities, by community id.
        max_input_tokens: the rendered text never has more.
    """
    packing = _Packing(community, records, reports, max_input_tokens)
    entities, relationships, claims, shown = packing.choose()
    return _render(community, records, entities, relationships, claims, shown)


_Choice = tuple[np.ndarray, np.ndarray, np.ndarray, list[ChildReport]]


class _Packing:
    """The choice of what goes into one context; entities, relationships and claims by position."""

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
        self.budget = max_input_tokens - records.count_tokens([_render_frame(community, records)])[0]
        n_numbers = len(community.entities) + len(community.relationships) + len(community.claims)
        self.number_tokens = 1 if n_numbers + len(self.reports) < _LONG_NUMBERS else 2
        self._counted: dict[ChildReport, int] = {}

    def choose(self) -> _Choice:
        """Everything, or with the fewest sub-communities replaced, largest first, or what fits."""
        order = self._largest_first()
        for n_replaced in range(len(order) + 1):
            shown = [self.reports[child] for child in order[:n_replaced]]
            rows = self._keep_outside(order[:n_replaced])
            if self._fits(rows, shown):
                return (*rows, shown)
        return self._pack(self._keep_outside(order), [self.reports[child] for child in order])

    def _largest_first(self) -> list[int]:
        """Sub-communities by the bytes of what they hold."""
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
        """Records that no replaced sub-community holds."""
        community = self.community
        is_replaced = np.zeros(len(community.children) + 1, dtype=bool)  # the last one is looked up by -1
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
        """Tokens of a report's row, whatever numbers its citations get."""
        if report in self._counted:
            return self._counted[report]
        cited = {kind: dict.fromkeys(ids, _LONG_NUMBERS) for kind, ids in _cited_ids(report).items()}
        row = render_row((report.title, number_citations(report.text, _spread(cited))))
        self._counted[report] = self.records.count_tokens([row])[0] + self.number_tokens
        return self._counted[report]

    def _pack(self, rows: tuple[np.ndarray, np.ndarray, np.ndarray], reports: Sequence[ChildReport]) -> _Choice:
        """What fits when not everything does."""
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
        """Short reports of as many sub-communities as fit, then whole ones in their place."""
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
        """Every relationship that fits with its entities; claims come along up to their share.

        Returns:
            tokens left, relationships taken, entities taken, claims taken.
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
        """Add what still fits, in order."""
        taken = set(taken)
        rows = rows[~np.isin(rows, list(taken))]
        for row, tokens in zip(rows.tolist(), kind.tokens(rows).tolist(), strict=True):
            if tokens + self.number_tokens <= left:
                taken.add(row)
                left -= tokens + self.number_tokens
        return left, taken


def _render(
    community: CommunityRows,
    records: GraphRecords,
    entities: np.ndarray,
    relationships: np.ndarray,
    claims: np.ndarray,
    shown: Sequence[ChildReport],
) -> CommunityContext:
    entity_records = tuple(records.entities.record(i) for i in entities.tolist())
    relationship_records = tuple(records.relationships.record(i) for i in relationships.tolist())
    claim_records = tuple(records.claims.record(i) for i in claims.tolist())
    numbers = _number_records(entity_records, relationship_records, claim_records, shown)
    text = "".join(
        [
            _render_community(community, records),
            *_render_reports(shown, numbers),
            *_render_table(_ENTITIES_HEADER, entity_records),
            *_render_table(_RELATIONSHIPS_HEADER, relationship_records),
            *_render_table(_CLAIMS_HEADER, claim_records),
        ]
    )
    return CommunityContext(
        community_id=community.id,
        level=community.level,
        n_entities=len(community.entities),
        n_relationships=len(community.relationships),
        n_claims=len(community.claims),
        central=_central(community, records),
        common_nouns=tuple(
            sorted(filter(is_common_noun, records.names.take(pa.array(community.entities)).to_pylist()))
        ),
        entities=entity_records,
        relationships=relationship_records,
        claims=claim_records,
        reports=tuple(shown),
        numbers=numbers,
        text=text,
    )


def _number_records(
    entities: Sequence[Record],
    relationships: Sequence[Record],
    claims: Sequence[Record],
    shown: Sequence[ChildReport],
) -> dict[str, dict[str, int]]:
    """Numbers from 1 per kind: what the tables list, in order, then what only the reports cite, as they cite it."""
    listed = {
        "Entities": [record.id for record in entities],
        "Relationships": [record.id for record in relationships],
        "Claims": [record.id for record in claims],
        "Reports": [report.community_id for report in shown],
    }
    for report in shown:
        for kind, ids in _cited_ids(report).items():
            listed.setdefault(kind, []).extend(ids)
    return {kind: {record: i for i, record in enumerate(dict.fromkeys(ids), start=1)} for kind, ids in listed.items()}


def _cited_ids(report: ChildReport) -> dict[str, list[str]]:
    cited: dict[str, list[str]] = {}
    for kind, ids in parse_citations(report.text):
        cited.setdefault(kind, []).extend(ids)
    return cited


def _spread(cited: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Distinct numbers, so that none is folded into another."""
    return {kind: {record: first + i for i, (record, first) in enumerate(ids.items())} for kind, ids in cited.items()}


def _render_frame(community: CommunityRows, records: GraphRecords) -> str:
    """All of a context but its rows."""
    headers = _REPORTS_HEADER + _ENTITIES_HEADER + _RELATIONSHIPS_HEADER + _CLAIMS_HEADER
    return _render_community(community, records) + headers


def _central(community: CommunityRows, records: GraphRecords) -> tuple[str, ...]:
    rows = community.entities[:MAX_CENTRAL_CANDIDATES].tolist()
    names = [records.names[i].as_py() for i in rows]
    ends = np.concatenate([records.sources[community.relationships], records.targets[community.relationships]])
    weights = [
        (COMMON_NOUN_SHARE if is_common_noun(name) else 1.0) * (1 + np.count_nonzero(ends == row))
        for row, name in zip(rows, names, strict=True)
    ]
    order = sorted(range(len(rows)), key=lambda i: -weights[i])
    central = [names[i] for i in order][:N_CENTRAL]
    before_nouns = list(takewhile(lambda name: not is_common_noun(name), central))
    return tuple(before_nouns if len(before_nouns) > 1 else central)


def _render_community(community: CommunityRows, records: GraphRecords) -> str:
    counts = [len(community.entities), len(community.relationships), len(community.claims)]
    fields = ",".join(map(str, counts))
    return f"{_COMMUNITY_HEADER}{fields}{render_row(('; '.join(_central(community, records)),))}"


def _render_reports(shown: Sequence[ChildReport], numbers: Mapping[str, Mapping[str, int]]) -> list[str]:
    if not shown:
        return []
    rows = [
        f"{number}{render_row((report.title, number_citations(report.text, numbers)))}"
        for number, report in enumerate(shown, start=1)
    ]
    return [_REPORTS_HEADER, *rows]


def _render_table(header: str, rows: Sequence[Record]) -> list[str]:
    if not rows:
        return []
    return [header, *(f"{number}{render_row(row.fields)}" for number, row in enumerate(rows, start=1))]
