"""Text of a report context: tables of numbered records, as a prompt shows them.

Keep out: which records are shown (`contexts.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from graphrag_pipeline.citations import number_citations, parse_citations, render_full_content
from graphrag_pipeline.indexing.reports.community_rows import CommunityRows
from graphrag_pipeline.indexing.reports.display_names import is_common_noun
from graphrag_pipeline.indexing.reports.records import GraphRecords, Record, render_row

N_CENTRAL = 3
MAX_CENTRAL_CANDIDATES = 20
COMMON_NOUN_SHARE = 1 / 3
"""Weight of a common noun's relationships when central entities are chosen; after two names nouns are left out."""

_COMMUNITY_HEADER = "-----Community-----\nentities,relationships,claims,central entities\n"
_REPORTS_HEADER = "-----Reports-----\nid,title,report\n"
_ENTITIES_HEADER = "-----Entities-----\nid,title,description\n"
_RELATIONSHIPS_HEADER = "-----Relationships-----\nid,source,target,description\n"
_CLAIMS_HEADER = "-----Claims-----\nid,subject,object,type,status,start date,end date,description\n"


@dataclass(frozen=True)
class ChildReport:
    """The report of a sub-community; its texts cite stable ids. A shortened one has no findings."""

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


def number_records(tables: Sequence[Sequence[Record]], shown: Sequence[ChildReport]) -> dict[str, dict[str, int]]:
    """Number the records of each kind from 1: those in the tables, then those that only the reports cite.

    Args:
        tables: the entities, relationships and claims shown.

    Returns:
        Kind of citation -> stable id -> number.
    """
    kinds = ("Entities", "Relationships", "Claims")
    listed = {kind: [record.id for record in rows] for kind, rows in zip(kinds, tables, strict=True)}
    listed["Reports"] = [report.community_id for report in shown]
    for report in shown:
        for kind, ids in find_cited_ids(report).items():
            listed.setdefault(kind, []).extend(ids)
    return {kind: {record: i for i, record in enumerate(dict.fromkeys(ids), start=1)} for kind, ids in listed.items()}


def find_cited_ids(report: ChildReport) -> dict[str, list[str]]:
    """Return the stable ids that a report cites, by kind of citation, in order."""
    cited: dict[str, list[str]] = {}
    for kind, ids in parse_citations(report.text):
        cited.setdefault(kind, []).extend(ids)
    return cited


def render_frame(community: CommunityRows, records: GraphRecords) -> str:
    """Render a context without its rows."""
    headers = _REPORTS_HEADER + _ENTITIES_HEADER + _RELATIONSHIPS_HEADER + _CLAIMS_HEADER
    return _render_community(community, records) + headers


def _render_community(community: CommunityRows, records: GraphRecords) -> str:
    counts = [len(community.entities), len(community.relationships), len(community.claims)]
    fields = ",".join(map(str, counts))
    return f"{_COMMUNITY_HEADER}{fields}{render_row(('; '.join(name_central(community, records)),))}"


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


def render_text(
    community: CommunityRows,
    records: GraphRecords,
    tables: Sequence[Sequence[Record]],
    shown: Sequence[ChildReport],
    numbers: Mapping[str, Mapping[str, int]],
) -> str:
    """Render a context: the community, reports of sub-communities, entities, relationships and claims.

    Args:
        tables: as in `number_records`.
        shown: the reports shown.
        numbers: from `number_records`.
    """
    headers = (_ENTITIES_HEADER, _RELATIONSHIPS_HEADER, _CLAIMS_HEADER)
    parts = [_render_community(community, records), *_render_reports(shown, numbers)]
    for header, rows in zip(headers, tables, strict=True):
        parts += _render_table(header, rows)
    return "".join(parts)


def name_central(community: CommunityRows, records: GraphRecords) -> tuple[str, ...]:
    """Return the titles of the entities with most relationships inside, at most `N_CENTRAL`; names before nouns."""
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
