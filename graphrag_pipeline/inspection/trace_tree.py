"""Tree below a cited record: its sources, down to mentions and documents, and the origin of each.

    report -> community, findings, the records it cites -> description, text units -> mentions, document

Keep out: parsing of citations (`tracing.py`), and rendering.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphrag_pipeline.citations import KIND_OF_RECORD, parse_citations
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.inspection.trace_origins import FindRun, Origin, StageRecords
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.query import records
from graphrag_pipeline.query.cited_records import CitedRecord, CitedRecords
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.results import TextUnitRecord

Names = Sequence[Collection[str]]
"""Normalized names in a mention: of an entity or a subject, or of both ends of a relationship."""

Mentioned = Mapping[str, Names]
"""Table of mentions -> names whose mentions are wanted."""

_NAMED = {"entity_mentions": ("name",), "relationship_mentions": ("source", "target"), "claim_mentions": ("subject",)}
_MENTION_FACTS = ("type", "status", "description", "strength", "predicate", "written")
_TABLES = {"Entities": "entities", "Relationships": "relationships", "Claims": "covariates",
           "Reports": "community_reports", "Sources": "text_units"}  # fmt: skip
_KIND_NAMES = {name: kind for kind, name in KIND_OF_RECORD.items()}


@dataclass(frozen=True)
class TraceNode:
    """One record of a trace.

    Attributes:
        kind: report, community, finding, entity, relationship, claim, description, text unit, mention or document.
        number: its human-readable id, as in citations; None if it has none.
        facts: other facts, by name.
        text: whole text of a report, with its citations; "" for other kinds, whose text is their name or below them.
        origin: its origin; None in an imported index, and for parts of another record.
        below: its sources.
        n_left_out: number of sources beyond the requested maximum.
    """

    kind: str
    name: str
    id: str
    number: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    origin: Origin | None = None
    below: tuple[TraceNode, ...] = ()
    n_left_out: int = 0
    text: str = ""


class Tracer:
    """Follower of records of an index to their sources.

    Args:
        index: of the root.
        n_most: see `tracing.trace_citation`.
    """

    def __init__(self, root: Root, index: GraphIndex, find_run: FindRun, n_most: int) -> None:
        self._index = index
        self._cited = CitedRecords(index)
        self._stages = StageRecords(root, index.snapshot, find_run)
        self._n_most = n_most

    def find(self, kind: str, number: int) -> CitedRecord | None:
        """Return the record of a kind (see `citations.KINDS`) and number; None if it does not exist."""
        table = _TABLES[kind]
        [row] = self._index.rows_of_numbers(table, "human_readable_id", [number]).tolist()
        if row < 0:
            return None
        [record] = self._index.snapshot.take(table, [row], ["id"])
        return self._cited.read_record(_KIND_NAMES[kind], record["id"])

    def trace(self, record: CitedRecord) -> TraceNode:
        """Return a record with its sources."""
        follow = {
            "report": self._report,
            "entity": self._entity,
            "relationship": self._relationship,
            "claim": self._claim,
            "text_unit": self._text_unit,
        }
        return follow[record.kind](record)

    def _row(self, table: str, record: CitedRecord) -> dict[str, Any]:
        snapshot = self._index.snapshot
        found: dict[str, Any] = snapshot.take(table, snapshot.rows_of(table, [record.id]))[0]
        return found

    # ------------------------------------------------------------------------------------------------------- reports

    def _report(self, record: CitedRecord) -> TraceNode:
        report = self._row("community_reports", record)
        row = self._index.rows_of_numbers("communities", "community", [report["community"]])
        [community] = self._index.snapshot.take("communities", row, ["id", "level", "size", "parent", "children"])
        [made] = self._stages.rows("community_reports", "community_id", [community["id"]]) or [{}]
        findings = [
            TraceNode("finding", finding["summary"], "", facts={"cites": _list_cited(finding["explanation"])})
            for finding in report["findings"][: self._n_most]
        ]
        # A report without citations has the text units of its community as sources.
        parts = [self.trace(part) for part in record.through[: self._n_most]]
        units, n_units = ([], 0) if parts else self._units(record.text_unit_rows, {})
        n_left_out = len(report["findings"]) - len(findings) + len(record.through) - len(parts) + n_units
        return TraceNode(
            "report",
            report["title"],
            report["id"],
            report["human_readable_id"],
            {name: report[name] for name in ("rank", "is_verbatim", "is_fallback")},
            self._stages.origin("community_reports", request_key=made.get("request_key")),
            (self._community(report["community"], community), *findings, *parts, *units),
            n_left_out,
            report["full_content"],
        )

    def _community(self, number: int, community: Mapping[str, Any]) -> TraceNode:
        facts = {name: community[name] for name in ("level", "size", "parent", "children")}
        return TraceNode("community", "", community["id"], number, facts, self._stages.origin("communities"))

    # ---------------------------------------------------------------------------------------- entities, relationships

    def _entity(self, record: CitedRecord) -> TraceNode:
        entity = self._row("entities", record)
        merged = self._stages.rows("entity_merges", "title", [entity["title"]])
        names = self._names([entity["title"]])
        facts = {"type": entity["type"], "names": entity["names"], "n_mentions": entity["n_mentions"]}
        if merged:
            facts["merged by"] = sorted({f"{row['name']}: {row['rule']}" for row in merged})
        return self._described(record, "entities", entity, entity["title"], facts, {"entity_mentions": (names,)})

    def _relationship(self, record: CitedRecord) -> TraceNode:
        pair = self._row("relationships", record)
        ends = self._names([pair["source"]]), self._names([pair["target"]])
        facts = {"weight": pair["weight"], "n_mentions": pair["n_mentions"]}
        name = f"{pair['source']} -- {pair['target']}"
        return self._described(record, "relationships", pair, name, facts, {"relationship_mentions": ends})

    def _names(self, titles: Sequence[str]) -> frozenset[str]:
        """Return the normalized names of entities in mentions."""
        rows = self._stages.rows("entities", "title", titles)
        merged = self._stages.rows("entity_merges", "title", titles)
        written = [*titles, *(name for row in rows for name in row["names"]), *(row["name"] for row in merged)]
        return frozenset(map(normalize_title, written))

    def _described(
        self,
        record: CitedRecord,
        table: str,
        row: Mapping[str, Any],
        name: str,
        facts: Mapping[str, Any],
        mentioned: Mentioned,
    ) -> TraceNode:
        units, n_left_out = self._units(record.text_unit_rows, mentioned)
        [made] = self._stages.rows(table, "id", [record.id]) or [{}]
        below = (*self._description(row["description"], made.get("description_key")), *units)
        origin = self._stages.origin("graph")
        return TraceNode(record.kind, name, record.id, record.human_readable_id, facts, origin, below, n_left_out)

    def _description(self, text: str, key: str | None) -> list[TraceNode]:
        rows = self._stages.rows("descriptions", "description_key", [key] if key else [])
        return [
            TraceNode(
                "description",
                text,
                row["description_key"],
                facts={name: row[name] for name in ("n_descriptions", "is_fallback")},
                origin=self._stages.origin("summarized_descriptions", request_key=row["request_key"]),
            )
            for row in rows
        ]

    def _claim(self, record: CitedRecord) -> TraceNode:
        claim = self._row("covariates", record)
        facts = {name: claim[name] for name in ("type", "status", "description", "source_text")}
        name = f"{claim['subject_id']} -> {claim['object_id']}"
        units, n_left_out = self._units(
            record.text_unit_rows, {"claim_mentions": (self._names([claim["subject_id"]]),)}
        )
        origin = self._stages.origin("graph")
        return TraceNode("claim", name, record.id, record.human_readable_id, facts, origin, tuple(units), n_left_out)

    # -------------------------------------------------------------------------------- text units, mentions, documents

    def _text_unit(self, record: CitedRecord) -> TraceNode:
        return self._units(record.text_unit_rows, {})[0][0]

    def _units(self, rows: Sequence[int], mentioned: Mentioned) -> tuple[list[TraceNode], int]:
        """Return nodes of the first text units of some rows, with their mentions, and the number left out."""
        shown = np.array(rows[: self._n_most], dtype=np.int64)
        units = records.read_text_units(self._index, shown, np.zeros(len(shown)))
        return [self._unit(unit, mentioned) for unit in units], len(rows) - len(units)

    def _unit(self, unit: TextUnitRecord, mentioned: Mentioned) -> TraceNode:
        bucket = self._stages.bucket_of(unit.document_id)
        facts = {"path": unit.document_path, **_place(unit.start, unit.end), "n_tokens": unit.n_tokens}
        document = TraceNode(
            "document",
            unit.document_title,
            unit.document_id,
            facts={"path": unit.document_path},
            origin=self._stages.origin("documents", bucket),
        )
        found = [node for table, names in mentioned.items() for node in self._mentions(table, names, unit.id, bucket)]
        return TraceNode(
            "text unit",
            unit.text,
            unit.id,
            unit.human_readable_id,
            facts,
            self._stages.origin("text_units", bucket),
            (*found[: self._n_most], document),
            max(len(found) - self._n_most, 0),
        )

    def _mentions(self, table: str, names: Names, unit_id: str, bucket: str) -> Iterable[TraceNode]:
        for row in self._stages.rows(table, "text_unit_id", [unit_id], bucket):
            ends = [row[column] for column in _NAMED[table] if column in row]
            if _fits([normalize_title(end) for end in ends], names):
                facts = {name: row[name] for name in _MENTION_FACTS if row.get(name) not in (None, "")}
                facts |= _place(row.get("start"), row.get("end"))
                origin = self._stages.origin("extracted_graph", bucket, row["request_key"])
                yield TraceNode("mention", " -- ".join(ends), f"{unit_id}/{row['position']}", None, facts, origin)


def _fits(called: Sequence[str], names: Names) -> bool:
    """Whether the names in a mention are these, in either order."""
    return any(all(call in known for call, known in zip(order, names, strict=True)) for order in (called, called[::-1]))


def _list_cited(text: str) -> str:
    """Return the citations of a text, without brackets."""
    return "; ".join(f"{kind} ({', '.join(numbers)})" for kind, numbers in parse_citations(text))


def _place(start: int | None, end: int | None) -> dict[str, int]:
    """Return character offsets in the document, if known."""
    return {} if start is None or end is None else {"start": start, "end": end}
