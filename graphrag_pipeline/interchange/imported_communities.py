"""Repair of imported communities: children partition their parent, and each entity is in one branch.

Pure. The branch of an entity is a path from a root through the communities that list it, or that list its relationships
if none lists it. An entity that no community lists gets a community of size 1. Members, relationships, text units,
children and sizes are derived from the branches. New communities get numbers after the largest number of the source.
A community has one report: its own, else one made of descriptions. Keep out: clustering.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from graphrag_pipeline.citations import render_full_content
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.interchange.imported_graph import ImportedGraph, RepairNotes, Row, order_rows
from graphrag_pipeline.text.tokens import TokenCounter

Branches = dict[str, list[int]]
"""Entity id -> numbers of its communities, root first."""
_Listed = dict[str, Counter[int]]
"""Entity id -> community number -> number of times that the community lists it."""


def repair_communities(
    rows: Iterable[Row], graph: ImportedGraph, text_unit_ids: Collection[str], notes: RepairNotes
) -> list[Row]:
    """Return contract rows of the communities, with lists as sets, and `is_new`; each entity is in one branch.

    Args:
        rows: with `id` unique; any order.
        text_unit_ids: existing ids; others are dropped and counted.
    """
    communities = _fold_numbers(rows, notes)
    following = itertools.count(1 + max(communities, default=-1))
    _repair_parents(communities, notes)
    branches = _find_branches(communities, graph, notes)
    _place_lonely(communities, branches, graph, following, notes)
    _place_left_over(communities, branches, following, notes)
    _set_levels(communities, notes)
    _fill_members(communities, branches, graph, notes)
    _fill_text_units(communities, graph, set(text_unit_ids), notes)
    for number, row in communities.items():
        row["human_readable_id"] = number
        row["title"] = row["title"] or f"Community {number}"
        row["size"] = len(row["entity_ids"])
        if row["is_new"]:
            row["id"] = stable_hash("community", str(row["level"]), *sorted(row["entity_ids"]))
    return [communities[number] for number in sorted(communities)]


def _fold_numbers(rows: Iterable[Row], notes: RepairNotes) -> dict[int, Row]:
    """Return rows by number, without negative numbers, which older releases use for "no community"."""
    communities: dict[int, Row] = {}
    n_folded = n_negative = 0
    for row in order_rows(rows, "community"):
        if row["community"] < 0:
            n_negative += 1
            continue
        known = communities.setdefault(row["community"], row | {"is_new": False})
        if known["id"] != row["id"]:
            n_folded += 1
            for column in ("entity_ids", "relationship_ids", "text_unit_ids"):
                known[column] = [*known[column], *row[column]]
    notes.add(n_negative, "community", "with a negative number, which stands for no community, {was} left out")
    notes.add(n_folded, "community", "with the number of another {was} folded into it")
    return communities


def _new_community(number: int, parent: int) -> Row:
    columns = {"community": number, "parent": parent, "level": None, "title": None, "period": None, "is_new": True}
    return columns | {"children": [], "relationship_ids": [], "text_unit_ids": []}


def _repair_parents(communities: dict[int, Row], notes: RepairNotes) -> None:
    """Set `parent` to a coarser community: the named one, else the one that shares most entities, else -1."""
    levels = sorted({row["level"] for row in communities.values()})
    coarser_of = dict(zip(levels[1:], levels, strict=False))
    home: dict[int, dict[str, int]] = {level: {} for level in levels}
    for number in sorted(communities, reverse=True):
        home[communities[number]["level"]].update(dict.fromkeys(communities[number]["entity_ids"], number))
    n_repaired = 0
    for row in communities.values():
        stated = row["parent"]
        if stated in communities and communities[stated]["level"] < row["level"]:
            continue
        around = home[coarser_of[row["level"]]] if row["level"] in coarser_of else {}
        shared = Counter(around[entity] for entity in set(row["entity_ids"]) if entity in around)
        row["parent"] = min(shared, key=lambda number: (-shared[number], number)) if shared else -1
        n_repaired += row["parent"] != (-1 if stated is None else stated)
    notes.add(n_repaired, "community", "whose parent was missing or not coarser {was} hung under the one that holds it")


def _find_branches(communities: Mapping[int, Row], graph: ImportedGraph, notes: RepairNotes) -> Branches:
    listed = _listed_by_entity(communities, graph, notes)
    by_relationship = _listed_by_relationship(communities, graph, set(graph.entities) - set(listed), notes)
    branches = {e: _branch(counts, communities) for e, counts in (listed | by_relationship).items()}
    n_added = sum(len(set(branches[entity]) - set(counts)) for entity, counts in listed.items())
    n_left = sum(len(set(counts) - set(branches[entity])) for entity, counts in listed.items())
    notes.add(n_added, "entity listing", "{was} added to communities that lacked an entity of their children")
    notes.add(n_left, "entity listing", "{was} taken out of communities, for the entity was in another of that level")
    n_endpoints = len(graph.added & set(by_relationship))
    rest = "in no community {was} placed in those that list their relationships"
    notes.add(n_endpoints, "added endpoint", "{was} placed in the communities that list their relationships")
    notes.add(len(by_relationship) - n_endpoints, "entity", rest)
    return branches


def _listed_by_entity(communities: Mapping[int, Row], graph: ImportedGraph, notes: RepairNotes) -> _Listed:
    listed: _Listed = defaultdict(Counter)
    n_dangling = 0
    for number, row in communities.items():
        for entity_id in set(row["entity_ids"]):
            if entity_id in graph.entity_of:
                listed[graph.entity_of[entity_id]][number] += 1
            else:
                n_dangling += 1
    notes.add(n_dangling, "entity id", "of communities {was} dropped: no entity has it")
    return dict(listed)


def _listed_by_relationship(
    communities: Mapping[int, Row], graph: ImportedGraph, wanted: Collection[str], notes: RepairNotes
) -> _Listed:
    """Count the relationships of each wanted entity that a community lists; both ends count as inside."""
    listed: _Listed = defaultdict(Counter)
    n_dangling = 0
    for number, row in communities.items():
        for relationship_id in set(row["relationship_ids"]) - graph.loops:
            if relationship_id not in graph.relationship_of:
                n_dangling += 1
                continue
            relationship = graph.relationships[graph.relationship_of[relationship_id]]
            for end in (relationship["source_id"], relationship["target_id"]):
                if end in wanted:
                    listed[end][number] += 1
    notes.add(n_dangling, "relationship id", "of communities {was} dropped: no relationship has it")
    return dict(listed)


def _children(communities: Mapping[int, Row]) -> dict[int, list[int]]:
    """Return the children of every community in ascending order; those of -1 are the roots."""
    children: dict[int, list[int]] = defaultdict(list)
    for number in sorted(communities):
        children[communities[number]["parent"]].append(number)
    return dict(children)


def _branch(listed: Counter[int], communities: Mapping[int, Row]) -> list[int]:
    """Return the path from a root along which an entity is listed most often, ties by number."""
    below: Counter[int] = Counter()
    for number, n_times in listed.items():
        while number != -1:
            below[number] += n_times
            number = communities[number]["parent"]
    branch: list[int] = []
    parent = -1
    while options := [number for number in below if communities[number]["parent"] == parent]:
        parent = min(options, key=lambda number: (-below[number], number))
        branch.append(parent)
    return branch


def _place_lonely(
    communities: dict[int, Row], branches: Branches, graph: ImportedGraph, following: Iterator[int], notes: RepairNotes
) -> None:
    lonely = set(graph.entities) - set(branches)
    for entity in sorted(lonely, key=lambda entity: graph.entities[entity]["title"]):
        number = next(following)
        communities[number] = _new_community(number, -1)
        branches[entity] = [number]
    rest = "{was} placed in communities of size 1 with verbatim reports"
    notes.add(len(lonely - graph.added), "entity", "in no community " + rest)
    notes.add(len(lonely & graph.added), "added endpoint", "whose relationships no community lists " + rest)


def _place_left_over(
    communities: dict[int, Row], branches: Branches, following: Iterator[int], notes: RepairNotes
) -> None:
    """Put the entities of a split community that are in none of its children into a new child."""
    children = _children(communities)
    left_over: dict[int, list[str]] = defaultdict(list)
    for entity, branch in branches.items():
        if branch[-1] in children:
            left_over[branch[-1]].append(entity)
    for parent in sorted(left_over):
        number = next(following)
        communities[number] = _new_community(number, parent)
        for entity in left_over[parent]:
            branches[entity].append(number)
    rest = "of a split community but of none of its children {was} placed in a new child of it"
    notes.add(sum(map(len, left_over.values())), "entity", rest)


def _set_levels(communities: Mapping[int, Row], notes: RepairNotes) -> None:
    n_other = 0
    children = _children(communities)
    for number, row in communities.items():
        level, parent = 0, row["parent"]
        while parent != -1:
            level, parent = level + 1, communities[parent]["parent"]
        n_other += row["level"] not in (None, level)
        row["level"] = level
        row["children"] = children.get(number, [])
    notes.add(n_other, "community", "with another level than their depth in the hierarchy {was} given that")


def _fill_members(communities: Mapping[int, Row], branches: Branches, graph: ImportedGraph, notes: RepairNotes) -> None:
    inside: dict[int, set[str]] = defaultdict(set)
    for relationship in graph.relationships.values():
        ends = branches[relationship["source_id"]], branches[relationship["target_id"]]
        for ours, theirs in zip(*ends, strict=False):
            if ours == theirs:
                inside[ours].add(relationship["id"])
    n_other = 0
    for number, row in communities.items():
        stated = {graph.relationship_of[r] for r in row["relationship_ids"] if r in graph.relationship_of}
        n_other += len(stated ^ inside[number]) if not row["is_new"] else 0
        row["entity_ids"], row["relationship_ids"] = set(), inside[number]
    for entity, branch in branches.items():
        for number in branch:
            communities[number]["entity_ids"].add(entity)
    notes.add(n_other, "relationship listing", "of communities {was} corrected to what lies inside")


def _fill_text_units(
    communities: Mapping[int, Row], graph: ImportedGraph, text_unit_ids: set[str], notes: RepairNotes
) -> None:
    n_dangling = n_added = 0
    for row in communities.values():
        stated = set(row["text_unit_ids"])
        records = [graph.entities[e] for e in row["entity_ids"]]
        records += [graph.relationships[r] for r in row["relationship_ids"]]
        row["text_unit_ids"] = (stated & text_unit_ids).union(*(record["text_unit_ids"] for record in records))
        n_dangling += len(stated - text_unit_ids)
        n_added += len(row["text_unit_ids"] - stated) if not row["is_new"] else 0
    notes.add(n_dangling, "text unit id", "of communities {was} dropped: no text unit has it")
    notes.add(n_added, "text unit id", "{was} added to communities whose entities they name")


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
        elif any((row[column] or "").strip() for column in ("full_content", "summary")) or bool(row["findings"]):
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
