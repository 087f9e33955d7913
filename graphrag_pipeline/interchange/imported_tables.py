"""Repair of an imported Microsoft GraphRAG index: rows in, contract tables and a list of repairs out.

Pure. The source's rules are looser than the contract's. A pair of entities may have two relationships, an endpoint may
have no entity row, an entity no community, and a list may name missing rows. Each defect is repaired as the pipeline
itself would have built the row, and counted in a note; no row disappears without a note. Rows are first sorted by
(`human_readable_id`, id), so the order of rows in the source's files does not matter.

This module holds links, claims and the assembly. The other repairs are in `imported_documents.py`, `imported_graph.py`,
`imported_communities.py` and `imported_reports.py`. Keep out: reading files (`graphrag_files.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from graphrag_pipeline.interchange.imported_communities import repair_communities
from graphrag_pipeline.interchange.imported_documents import repair_documents
from graphrag_pipeline.interchange.imported_graph import ImportedGraph, plain_title, repair_graph
from graphrag_pipeline.interchange.imported_reports import count_report_tokens, repair_reports
from graphrag_pipeline.interchange.imported_rows import ImportedNumbering, RepairNotes, Row, Rows, give_ids, order_rows
from graphrag_pipeline.tables import CONTRACT_TABLES, Table
from graphrag_pipeline.text.tokens import TokenCounter

_NUMBERED = ("documents", "text_units", "entities", "relationships", "covariates")


@dataclass(frozen=True)
class RepairedTables:
    """An imported index that meets the contract.

    Attributes:
        tables: contract tables by name, in file order.
        notes: repairs, one sentence each; empty for an index without defects.
        changed: (table, id) of records whose text differs from the source, so that a stored vector does not fit.
    """

    tables: dict[str, pa.Table]
    notes: tuple[str, ...]
    changed: frozenset[tuple[str, str]]


def repair_tables(
    source: Mapping[str, Sequence[Row]], max_report_tokens: int, count_tokens_each: TokenCounter
) -> RepairedTables:
    """Make contract tables from the rows of a GraphRAG index.

    Args:
        source: rows by contract table name, as `interchange.graphrag_files.read_graphrag_tables` gives them.
        max_report_tokens: maximum tokens of a report made of entity descriptions.
        count_tokens_each: counts the tokens of texts.
    """
    notes = RepairNotes()
    numbering = ImportedNumbering(notes)
    rows = {name: give_ids(name, order_rows(source[name]), notes) for name in _NUMBERED}
    rows |= {n: give_ids(n, order_rows(source[n], "community"), notes) for n in ("communities", "community_reports")}
    documents, text_units, entities, relationships, covariates = (
        numbering.give_numbers(name, rows[name]) for name in _NUMBERED
    )
    units = {row["id"]: row for row in text_units}
    changed = repair_documents(documents, units, numbering, notes)
    graph = repair_graph(entities, relationships, set(units), numbering.next_number, notes)
    complete_links(graph, units, notes)
    claims = repair_claims(covariates, graph, units, notes)
    _count_tokens(graph, claims, units, count_tokens_each, notes)
    communities = repair_communities(rows["communities"], graph, set(units), notes)
    numbering.use_up("community", max((row["community"] for row in communities), default=-1))
    reports, rewritten = repair_reports(rows["community_reports"], communities, graph, max_report_tokens, notes)
    count_report_tokens(reports, count_tokens_each)
    tables = _assemble(documents, units, graph, claims, communities, reports, numbering)
    changed |= graph.changed | {("community_reports", report_id) for report_id in rewritten}
    return RepairedTables(tables, tuple(notes.lines), frozenset(changed))


# --------------------------------------------------------------------------------------------------- links and claims


def complete_links(graph: ImportedGraph, units: Rows, notes: RepairNotes) -> None:
    """Unite the entity and relationship lists of text units with the text unit lists of those records."""
    for column, noun, records, became in (
        ("entity_ids", "entity", graph.entities, graph.entity_of),
        ("relationship_ids", "relationship", graph.relationships, graph.relationship_of),
    ):
        n_dangling = n_completed = 0
        for unit in units.values():
            for record_id in set(unit[column]) - graph.loops:
                if record_id not in became:
                    n_dangling += 1
                    continue
                of_record = records[became[record_id]]["text_unit_ids"]
                n_completed += unit["id"] not in of_record
                of_record.add(unit["id"])
        notes.add(n_dangling, f"{noun} id", f"of text units {{was}} dropped: no {noun} has it")
        notes.add(n_completed, "text unit id", f"that the text unit alone knew of {{was}} added to its {noun}")


def repair_claims(rows: Sequence[Row], graph: ImportedGraph, units: Rows, notes: RepairNotes) -> list[Row]:
    """Return contract rows of the claims whose text unit exists, without token counts."""
    columns = ("id", "human_readable_id", "start_date", "end_date", "text_unit_id")
    texts = ("type", "description", "status", "source_text")
    claims = [
        {column: row[column] for column in columns}
        | {column: row[column] or "" for column in texts}
        | {"covariate_type": row["covariate_type"] or "claim", "text_unit_ids": [row["text_unit_id"]]}
        | {end: plain_title(row[end]) if row[end] else "" for end in ("subject_id", "object_id")}
        for row in rows
        if row["text_unit_id"] in units
    ]
    notes.add(len(rows) - len(claims), "claim", "of a text unit that is not there {was} left out")
    n_foreign = sum(claim["subject_id"] not in graph.id_of_title for claim in claims)
    notes.add(n_foreign, "claim", "whose subject is no entity {was} kept")
    return claims


# ----------------------------------------------------------------------------------------------------------- assembly


def _count_tokens(
    graph: ImportedGraph, claims: list[Row], units: Rows, count_tokens_each: TokenCounter, notes: RepairNotes
) -> None:
    uncounted = [unit for unit in units.values() if unit["n_tokens"] is None]
    for rows, columns in (
        (list(graph.entities.values()), ("title", "description")),
        (list(graph.relationships.values()), ("source", "target", "description")),
        (claims, ("subject_id", "object_id", "description")),
        (uncounted, ("text",)),
    ):
        texts = [" ".join(row[column] for column in columns) for row in rows]
        for row, n_tokens in zip(rows, count_tokens_each(texts), strict=True):
            row["n_tokens"] = n_tokens
    notes.add(len(uncounted), "text unit", "without a count of tokens, or with a changed text, {was} counted")


def _assemble(
    documents: list[Row],
    units: Rows,
    graph: ImportedGraph,
    claims: list[Row],
    communities: list[Row],
    reports: list[Row],
    numbering: ImportedNumbering,
) -> dict[str, pa.Table]:
    """Build contract tables: references both ways, lists ordered by number, exactly the contract's columns."""
    for unit in units.values():
        unit |= {"entity_ids": [], "relationship_ids": [], "covariate_ids": []}
    of_document = defaultdict(list)
    for unit in units.values():
        of_document[unit["document_id"]].append(unit["id"])
    for document in documents:
        document |= {"text_unit_ids": of_document[document["id"]], "path": "", "record": ""}
        document |= {column: document[column] or "" for column in ("title", "text")}
    for entity in graph.entities.values():
        entity["frequency"] = len(entity["text_unit_ids"])
    parts: dict[str, list[Row]] = {
        "documents": documents,
        "text_units": list(units.values()),
        "entities": list(graph.entities.values()),
        "relationships": list(graph.relationships.values()),
        "covariates": claims,
        "communities": communities,
        "community_reports": reports,
    }
    numbers = {name: {row["id"]: row["human_readable_id"] for row in rows} for name, rows in parts.items()}
    for name, column in (("entities", "entity_ids"), ("relationships", "relationship_ids")):
        for row in sorted(parts[name], key=lambda row: row["human_readable_id"]):
            for unit_id in row["text_unit_ids"]:
                units[unit_id][column].append(row["id"])
    for claim in claims:
        units[claim["text_unit_id"]]["covariate_ids"].append(claim["id"])
    for name, column, other in (
        ("entities", "text_unit_ids", "text_units"),
        ("relationships", "text_unit_ids", "text_units"),
        ("communities", "entity_ids", "entities"),
        ("communities", "relationship_ids", "relationships"),
        ("communities", "text_unit_ids", "text_units"),
    ):
        for row in parts[name]:
            row[column] = sorted(row[column], key=numbers[other].__getitem__)
    parts["record_numbers"] = numbering.record_numbers(parts)
    parts["failures"] = []  # the source does not record failures
    return {name: table.from_rows(_select(parts[name], table)) for name, table in CONTRACT_TABLES.items()}


def _select(rows: Sequence[Row], table: Table) -> list[Row]:
    return [{column: row[column] for column in table.schema.names} for row in rows]
