"""Repair of imported entities and relationships: one entity per title, one relationship per pair.

Pure. Titles are normalized, and entities with one title are folded. Endpoints without an entity row become entities of
type UNKNOWN. Relationships are folded to unordered pairs. The row with the smallest number remains, with its id, its
number and its direction. `ImportedGraph` maps the other rows to it. Keep out: communities, text units, tokens.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphrag_pipeline.identity import entity_id, normalize_title, stable_hash

Row = dict[str, Any]
Rows = dict[str, Row]  # by id, in the order of their numbers

KINDS = {
    "documents": "document", "text_units": "text_unit", "entities": "entity", "relationships": "relationship",
    "covariates": "covariate", "communities": "community",
}  # fmt: skip
"""Contract table -> kind in `record_numbers`."""

_NOUNS = {
    "documents": "document", "text_units": "text unit", "entities": "entity", "relationships": "relationship",
    "covariates": "claim", "communities": "community", "community_reports": "report",
}  # fmt: skip


class RepairNotes:
    """Notes on repairs, in the order in which the defects were found.

    Notes are part of the manifest, so their wording is part of the id of an imported snapshot.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, n: int, noun: str, rest: str) -> None:
        """Note `n` cases, none if n is 0; `{was}` in `rest` becomes was or were."""
        if n:
            plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
            self.lines.append(f"{n} {noun if n == 1 else plural} {rest.format(was='was' if n == 1 else 'were')}")


def order_rows(rows: Iterable[Row], number: str = "human_readable_id") -> list[Row]:
    """Sort rows by number (null last), then id, then content: the same list for any order of the rows."""

    def key(row: Row) -> tuple[bool, int, str]:
        return row[number] is None, row[number] or 0, row.get("id") or ""

    ordered: list[Row] = []
    for _, group in itertools.groupby(sorted(rows, key=key), key):
        tied = list(group)
        ordered += sorted(tied, key=canonical) if len(tied) > 1 else tied
    return ordered


def canonical(row: Row) -> str:
    """Return one text per content."""
    return json.dumps(row, sort_keys=True, ensure_ascii=False)


def give_ids(table: str, rows: Iterable[Row], notes: RepairNotes) -> list[Row]:
    """Return copies of ordered rows, each with a unique id; identical rows are kept once."""
    noun = _NOUNS[table]
    seen: set[str] = set()
    kept: list[Row] = []
    previous: Row | None = None
    n_repeated = n_given = 0
    for row in rows:
        if row == previous:
            n_repeated += 1
            continue
        previous = row
        own = dict(row)
        if not own["id"] or own["id"] in seen:
            own["id"] = stable_hash("imported", table, canonical(row))
            n_given += 1
        seen.add(own["id"])
        kept.append(own)
    notes.add(n_repeated, noun, "repeated word for word {was} kept once")
    notes.add(n_given, noun, "whose id was missing or taken {was} given a new one")
    return kept


class ImportedNumbering:
    """Numbers of imported records: those of the source if unique, else the next free ones."""

    def __init__(self, notes: RepairNotes) -> None:
        self._notes = notes
        self._next = dict.fromkeys(KINDS.values(), 0)

    def give_numbers(self, table: str, rows: list[Row]) -> list[Row]:
        """Give each of `rows` a unique `human_readable_id`, in place, and return them."""
        kind = KINDS[table]
        following = 1 + max((row["human_readable_id"] or 0 for row in rows), default=-1)
        seen: set[int] = set()
        n_given = 0
        for row in rows:
            number = row["human_readable_id"]
            if number is None or number < 0 or number in seen:
                row["human_readable_id"], following = following, following + 1
                n_given += 1
            seen.add(row["human_readable_id"])
        self._next[kind] = following
        self._notes.add(n_given, _NOUNS[table], "whose human_readable_id was missing or taken {was} numbered again")
        return rows

    def next_number(self, kind: str) -> int:
        """Return the next free number of a kind and mark it as used."""
        self._next[kind] += 1
        return self._next[kind] - 1

    def use_up(self, kind: str, number: int) -> None:
        """Mark all numbers up to this one as used."""
        self._next[kind] = max(self._next[kind], number + 1)

    def record_numbers(self, tables: Mapping[str, Sequence[Row]]) -> list[Row]:
        """Return the rows of `record_numbers` for the rows of the contract tables."""
        rows = [
            {"kind": kind, "id": row["id"], "number": row["human_readable_id"]}
            for table, kind in KINDS.items()
            for row in tables[table]
        ]
        return rows + [{"kind": kind, "id": "", "number": self._next[kind]} for kind in KINDS.values()]


def distinct_texts(texts: Iterable[str | None]) -> str:
    """Return the distinct texts that are not blank, sorted, one per line."""
    return "\n".join(sorted({text for text in texts if text and text.strip()}))


UNKNOWN = "UNKNOWN"
_UNNAMED = "UNNAMED"
_PLAIN_WEIGHT = 1.0


@dataclass
class ImportedGraph:
    """The repaired graph; rows have the contract's columns, `text_unit_ids` as the keys of a dict.

    Attributes:
        entities: by id.
        relationships: by id.
        entity_of: id in the source -> id of the entity it became.
        relationship_of: id in the source -> id of the relationship it became.
        added: ids of the entities without a row in the source.
        loops: ids of relationships from an entity to itself, which became part of it.
        moved_numbers: kind in a citation -> number of a folded row -> number of the remaining row.
        changed: (table, id) of records whose text differs from the source.
    """

    entities: dict[str, Row] = field(default_factory=dict)
    relationships: dict[str, Row] = field(default_factory=dict)
    entity_of: dict[str, str] = field(default_factory=dict)
    relationship_of: dict[str, str] = field(default_factory=dict)
    added: set[str] = field(default_factory=set)
    loops: set[str] = field(default_factory=set)
    moved_numbers: dict[str, dict[int, int]] = field(default_factory=lambda: {"Entities": {}, "Relationships": {}})
    changed: set[tuple[str, str]] = field(default_factory=set)
    id_of_title: dict[str, str] = field(default_factory=dict)

    def add_entity(self, row: Row) -> None:
        self.entities[row["id"]] = row
        self.id_of_title[row["title"]] = row["id"]


def plain_title(name: str | None) -> str:
    """Return the title of an entity; all empty names get the same title."""
    return normalize_title(name or "") or _UNNAMED


def repair_graph(
    entities: Iterable[Row],
    relationships: Iterable[Row],
    text_unit_ids: set[str],
    next_number: Callable[[str], int],
    notes: RepairNotes,
) -> ImportedGraph:
    """Fold entities and relationships, and give every endpoint an entity.

    Args:
        entities: in order, with unique ids and numbers.
        text_unit_ids: existing ids; others are dropped from the lists of the rows and counted.
        next_number: returns the next free number of a kind.
    """
    graph = ImportedGraph()
    entities, relationships = list(entities), list(relationships)
    for noun, rows in (("entity", entities), ("relationship", relationships)):
        n_dangling = sum(len(set(row["text_unit_ids"]) - text_unit_ids) for row in rows)
        notes.add(n_dangling, "text unit id", f"of {noun} rows {{was}} dropped: no text unit has it")
        for row in rows:
            row["text_unit_ids"] = dict.fromkeys(one for one in row["text_unit_ids"] if one in text_unit_ids)
    _fold_entities(graph, entities, notes)
    _add_unknown_endpoints(graph, relationships, next_number, notes)
    _fold_relationships(graph, _fold_loops(graph, relationships, notes), notes)
    _count_degrees(graph, entities, notes)
    return graph


def _fold_entities(graph: ImportedGraph, rows: list[Row], notes: RepairNotes) -> None:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[plain_title(row["title"])].append(row)
    for title, group in groups.items():
        graph.add_entity(_one_entity(title, group))
        for row in group:
            graph.entity_of[row["id"]] = group[0]["id"]
            if row is not group[0]:
                graph.moved_numbers["Entities"][row["human_readable_id"]] = group[0]["human_readable_id"]
        if len(group) > 1 or title != group[0]["title"]:
            graph.changed.add(("entities", group[0]["id"]))
    n_renamed = sum(plain_title(row["title"]) != row["title"] for row in rows)
    notes.add(n_renamed, "entity title", "{was} normalised (upper case, white space and quotes folded)")
    notes.add(len(rows) - len(groups), "entity", "with the title of another {was} folded into it")
    n_untyped = sum(not row["type"] for row in rows)
    notes.add(n_untyped, "entity", f"without a type {{was}} given the type {UNKNOWN}")


def _one_entity(title: str, group: list[Row]) -> Row:
    """Fold rows with one title into an entity; its type is the most frequent one, ties by name."""
    counts = Counter(row["type"] or UNKNOWN for row in group)
    types = sorted(counts, key=lambda name: (name == UNKNOWN, -counts[name], name))
    text_unit_ids = dict.fromkeys(itertools.chain.from_iterable(row["text_unit_ids"] for row in group))
    n_mentions = sum(max(row["frequency"] or 0, len(row["text_unit_ids"])) for row in group)
    return {
        "id": group[0]["id"],
        "human_readable_id": group[0]["human_readable_id"],
        "title": title,
        "type": types[0],
        "types": types,
        "names": sorted({row["title"] for row in group if row["title"]}) or [title],
        "description": group[0]["description"] or "" if len(group) == 1 else distinct_texts(_descriptions(group)),
        "text_unit_ids": text_unit_ids,
        "n_mentions": n_mentions,
    }


def _descriptions(group: Iterable[Row]) -> Iterable[str | None]:
    return (row["description"] for row in group)


def _add_unknown_endpoints(
    graph: ImportedGraph, relationships: list[Row], next_number: Callable[[str], int], notes: RepairNotes
) -> None:
    names: dict[str, set[str]] = defaultdict(set)
    for row in relationships:
        for name in (row["source"], row["target"]):
            if plain_title(name) not in graph.id_of_title:
                names[plain_title(name)].add(name or _UNNAMED)
    for title in sorted(names):
        new_id = entity_id(title)
        while new_id in graph.entity_of:
            new_id = stable_hash("entity", new_id)
        graph.entity_of[new_id] = new_id
        graph.added.add(new_id)
        graph.add_entity(
            {
                "id": new_id,
                "human_readable_id": next_number("entity"),
                "title": title,
                "type": UNKNOWN,
                "types": [UNKNOWN],
                "names": sorted(names[title]),
                "description": "",
                "text_unit_ids": {},
                "n_mentions": 0,
            }
        )
    for row in relationships:
        for name in (row["source"], row["target"]):
            if plain_title(name) in names:
                entity = graph.entities[graph.id_of_title[plain_title(name)]]
                entity["text_unit_ids"] |= row["text_unit_ids"]
                entity["n_mentions"] += max(len(row["text_unit_ids"]), 1)
    notes.add(
        len(names), "relationship endpoint", f"that no entity row names {{was}} added as entities of type {UNKNOWN}"
    )


def _fold_loops(graph: ImportedGraph, relationships: list[Row], notes: RepairNotes) -> list[Row]:
    """Return relationships between two entities; the text of one from an entity to itself moves into the entity."""
    between = []
    for row in relationships:
        if plain_title(row["source"]) != plain_title(row["target"]):
            between.append(row)
            continue
        entity = graph.entities[graph.id_of_title[plain_title(row["source"])]]
        entity["text_unit_ids"] |= row["text_unit_ids"]
        if row["description"] and row["description"] not in entity["description"]:
            entity["description"] = "\n".join(text for text in (entity["description"], row["description"]) if text)
            graph.changed.add(("entities", entity["id"]))
        graph.loops.add(row["id"])
    notes.add(len(graph.loops), "relationship", "from an entity to itself {was} folded into the entity's description")
    return between


def _fold_relationships(graph: ImportedGraph, relationships: list[Row], notes: RepairNotes) -> None:
    groups: dict[frozenset[str], list[Row]] = defaultdict(list)
    for row in relationships:
        groups[frozenset((plain_title(row["source"]), plain_title(row["target"])))].append(row)
    for group in groups.values():
        first = group[0]
        source, target = plain_title(first["source"]), plain_title(first["target"])
        description = distinct_texts(_descriptions(group)) if len(group) > 1 else first["description"] or ""
        if description != (first["description"] or ""):
            graph.changed.add(("relationships", first["id"]))
        graph.relationships[first["id"]] = {
            "id": first["id"],
            "human_readable_id": first["human_readable_id"],
            "source": source,
            "target": target,
            "source_id": graph.id_of_title[source],
            "target_id": graph.id_of_title[target],
            "description": description,
            "weight": sum(_weight(row) for row in group),
            "text_unit_ids": dict.fromkeys(itertools.chain.from_iterable(row["text_unit_ids"] for row in group)),
            "n_mentions": sum(max(len(row["text_unit_ids"]), 1) for row in group),
            "predicates": None,
        }
        for row in group:
            graph.relationship_of[row["id"]] = first["id"]
            if row is not first:
                graph.moved_numbers["Relationships"][row["human_readable_id"]] = first["human_readable_id"]
    n_folded = len(relationships) - len(groups)
    notes.add(n_folded, "relationship", "that repeat an unordered pair {was} folded into one")
    n_weightless = sum(row["weight"] is None for row in relationships)
    notes.add(n_weightless, "relationship", f"without a weight {{was}} given the weight {_PLAIN_WEIGHT:g}")
    n_negative = sum((row["weight"] or 0) < 0 for row in relationships)
    notes.add(n_negative, "relationship", f"with a weight below 0 {{was}} given the weight {_PLAIN_WEIGHT:g}")


def _weight(relationship: Row) -> float:
    """Return the weight; walks over the graph and communities know no negative ones."""
    weight = relationship["weight"]
    return _PLAIN_WEIGHT if weight is None or weight < 0 else weight


def _count_degrees(graph: ImportedGraph, rows: list[Row], notes: RepairNotes) -> None:
    degree = Counter(r[end] for r in graph.relationships.values() for end in ("source_id", "target_id"))
    for entity in graph.entities.values():
        entity["degree"] = degree[entity["id"]]
    for relationship in graph.relationships.values():
        relationship["combined_degree"] = degree[relationship["source_id"]] + degree[relationship["target_id"]]
    known = (row for row in rows if row["degree"] is not None and row["id"] in graph.entities)
    n_other = sum(row["degree"] != degree[row["id"]] for row in known)
    notes.add(n_other, "entity", "had another degree than the repaired relationships give; degrees were counted again")
