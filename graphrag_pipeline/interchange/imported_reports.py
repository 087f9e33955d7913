"""Community reports of an imported index: kept unchanged, or made of descriptions if a community has none.

Pure. Numbers of folded rows in citations are replaced by those of the remaining rows. Keep out: writing reports.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from graphrag_pipeline.citations import render_full_content
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.interchange.imported_graph import ImportedGraph
from graphrag_pipeline.interchange.imported_rows import RepairNotes, Row, order_rows
from graphrag_pipeline.text.tokens import TokenCounter

_CITATION = re.compile(r"\[\s*Data\s*:[^\[\]]*\]", re.IGNORECASE)
_CITED = re.compile(r"\b(Entities|Relationships)(\s*\()([^()]*)(?=\))", re.IGNORECASE)


def repair_reports(
    rows: Iterable[Row], communities: Sequence[Row], graph: ImportedGraph, max_tokens: int, notes: RepairNotes
) -> tuple[list[Row], set[str]]:
    """Return one report per community.

    Args:
        rows: with `id` unique; any order.
        communities: as `repair_communities` returns them.
        max_tokens: maximum tokens of descriptions in a report made of them.

    Returns:
        Contract rows without token counts, and the ids of reports whose text differs from the source.
    """
    numbers = {community["community"] for community in communities}
    known: dict[int, Row] = {}
    n_homeless = n_repeated = 0
    for row in order_rows(rows, "community"):
        if row["community"] not in numbers:
            n_homeless += 1
        elif row["community"] in known:
            n_repeated += 1
        elif _has_text(row):
            known[row["community"]] = row
    notes.add(n_homeless, "report", "of no community {was} left out")
    notes.add(n_repeated, "report", "of a community that has one already {was} left out")
    reports = [
        _kept_report(known[community["community"]], community, graph)
        if community["community"] in known
        else _verbatim_report(community, graph, max_tokens)
        for community in communities
    ]
    n_without = sum(not c["is_new"] and c["community"] not in known for c in communities)
    notes.add(n_without, "community", "without a report {was} given one made up of descriptions")
    stated = {row["id"]: row["full_content"] for row in known.values()}
    changed = {report["id"] for report in reports if report["full_content"] != stated.get(report["id"], "")} & set(
        stated
    )
    notes.add(len(changed), "report", "that {was} empty or cited a folded row {was} repaired")
    return reports, changed


def count_report_tokens(reports: Sequence[Row], count_tokens_each: TokenCounter) -> None:
    """Fill in the token counts."""
    for column, counted in (("full_content", "n_tokens"), ("summary", "n_summary_tokens")):
        for row, n_tokens in zip(reports, count_tokens_each([row[column] for row in reports]), strict=True):
            row[counted] = n_tokens


def _has_text(row: Row) -> bool:
    return any((row[column] or "").strip() for column in ("full_content", "summary")) or bool(row["findings"])


def _of_community(community: Row) -> Row:
    columns = ("human_readable_id", "community", "level", "parent", "children", "period", "size")
    return {column: community[column] for column in columns}


def _kept_report(row: Row, community: Row, graph: ImportedGraph) -> Row:
    def move(text: str | None) -> str:
        return _move_citations(text or "", graph.moved_numbers)

    title, summary = row["title"] or community["title"], move(row["summary"])
    findings = [{key: move(text) for key, text in finding.items()} for finding in row["findings"]]
    explanation = move(row["rating_explanation"])
    full_content = move(row["full_content"])
    if not full_content.strip():
        full_content = render_full_content(title, summary, findings)
    rank = row["rank"] or 0.0
    content = move(row["full_content_json"]) or _content_json(title, summary, findings, rank, explanation)
    return _of_community(community) | {
        "id": row["id"],
        "period": row["period"] or community["period"],
        "title": title,
        "summary": summary,
        "full_content": full_content,
        "rank": rank,
        "rating_explanation": explanation,
        "findings": findings,
        "full_content_json": content,
        "is_verbatim": False,
        "is_fallback": False,
    }


def _verbatim_report(community: Row, graph: ImportedGraph, max_tokens: int) -> Row:
    """Make a report of titles and descriptions of the members, most relationships first, while they fit."""
    members = [graph.entities[entity] for entity in community["entity_ids"]]
    members.sort(key=lambda entity: (-entity["degree"], entity["human_readable_id"]))
    is_single = len(members) == 1
    title = members[0]["title"] if is_single else community["title"]
    findings: list[Row] = []
    n_tokens = 0
    for entity in members:
        n_tokens += entity["n_tokens"]
        if findings and n_tokens > max_tokens:
            break
        findings.append({"summary": entity["title"], "explanation": entity["description"]})
    summary = members[0]["description"] or title if is_single else _member_list(findings, len(members), title)
    findings = [] if is_single else findings
    explanation = "Made up of descriptions: the imported index has no report on this community."
    return _of_community(community) | {
        "id": stable_hash("report", community["id"]),
        "title": title,
        "summary": summary,
        "full_content": render_full_content(title, summary, findings),
        "rank": 0.0,
        "rating_explanation": explanation,
        "findings": findings,
        "full_content_json": _content_json(title, summary, findings, 0.0, explanation),
        "is_verbatim": True,
        "is_fallback": not (community["is_new"] and is_single),
    }


def _member_list(findings: Sequence[Row], n_members: int, title: str) -> str:
    if not findings:
        return f"{title} has no entities."
    more = f" and {n_members - len(findings)} more" if n_members > len(findings) else ""
    return f"{n_members} entities: {', '.join(finding['summary'] for finding in findings)}{more}."


def _content_json(title: str, summary: str, findings: Sequence[Row], rank: float, explanation: str) -> str:
    content = {"title": title, "summary": summary, "findings": findings, "rating": rank}
    return json.dumps(content | {"rating_explanation": explanation}, ensure_ascii=False)


def _move_citations(text: str, moved: Mapping[str, Mapping[int, int]]) -> str:
    """Replace the numbers of folded rows in the citations of `text` by those of the remaining rows."""

    def move(match: re.Match[str]) -> str:
        numbers = moved[match.group(1).capitalize()]
        items = [item.strip() for item in match.group(3).split(",")]
        if not any(item.isdecimal() and int(item) in numbers for item in items):
            return match.group(0)
        renamed = [str(numbers.get(int(item), item)) if item.isdecimal() else item for item in items]
        return match.group(1) + match.group(2) + ", ".join(dict.fromkeys(renamed))

    return _CITATION.sub(lambda citation: _CITED.sub(move, citation.group(0)), text)
