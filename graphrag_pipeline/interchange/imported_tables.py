"""Repair of an imported Microsoft GraphRAG index: rows in, contract tables and a list of repairs out.

Pure. The source's rules are looser than the contract's. A pair of entities may have two relationships, an endpoint may
have no entity row, an entity no community, and a list may name missing rows. Each defect is repaired as the pipeline
itself would have built the row, and counted in a note; no row disappears without a note. Rows are first sorted by
(`human_readable_id`, id), so the order of rows in the source's files does not matter.

This module holds documents, links, claims and the assembly; entities and relationships are in `imported_graph.py`,
communities and reports in `imported_communities.py`. Keep out: reading files (`graphrag_files.py`).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.interchange.imported_communities import count_report_tokens, repair_communities, repair_reports
from graphrag_pipeline.interchange.imported_graph import (
    ImportedGraph,
    ImportedNumbering,
    RepairNotes,
    Row,
    Rows,
    give_ids,
    order_rows,
    plain_title,
    repair_graph,
)
from graphrag_pipeline.tables import CONTRACT_TABLES, Table
from graphrag_pipeline.text.tokens import TokenCounter

_METADATA_LINE = re.compile(r"([^\n:]{1,80}): ([^\n]*)\n")
_MAX_METADATA_LINES = 50


def repair_documents(
    documents: list[Row], units: Rows, numbering: ImportedNumbering, notes: RepairNotes
) -> set[tuple[str, str]]:
    """Give every text unit its document and its offsets; changes `documents` and `units` in place.

    GraphRAG may put "title: ..." lines on top of a text unit. If the text is found only without these lines, they move
    to the metadata of the document, so that the text is exactly document.text[start:end].

    Returns:
        ("text_units", id) of the text units whose text changed.
    """
    _find_documents(documents, units, numbering, notes)
    units_of: dict[str, list[Row]] = defaultdict(list)
    for unit in units.values():
        units_of[unit["document_id"]].append(unit)
    changed: set[tuple[str, str]] = set()
    n_lost = 0
    for document in documents:
        metadata = _metadata_of(document)
        previous = -1
        for unit in units_of[document["id"]]:
            found = locate_text(unit["text"] or "", document["text"] or "", previous + 1)
            unit["start"], unit["end"] = (found[0], found[0] + len(found[1])) if found else (None, None)
            unit |= dict.fromkeys(
                ("header_start", "header_end", "heading_path", "heading_levels", "first_page", "last_page")
            )
            if found is None:
                n_lost += 1
                continue
            previous, text = found
            if text != unit["text"]:
                changed.add(("text_units", unit["id"]))
                _move_metadata(unit, text, document, metadata)
        document["metadata"] = json.dumps(metadata, sort_keys=True, ensure_ascii=False)
    rest = "began with metadata lines (title: ...): these {was} moved to the document, so that text and offsets agree"
    notes.add(len(changed), "text unit", rest)
    notes.add(n_lost, "text unit", "that {was} not found in the document's text have no character offsets")
    return changed


def _find_documents(documents: list[Row], units: Rows, numbering: ImportedNumbering, notes: RepairNotes) -> None:
    known = {document["id"] for document in documents}
    listed_in = {unit_id: d["id"] for d in reversed(documents) for unit_id in d["text_unit_ids"]}
    missing: dict[str, str] = {}  # id in the source ("" where it names none) -> id of the added document
    n_several = 0
    for unit in units.values():
        named = [document_id for document_id in unit["document_ids"] if document_id in known]
        n_several += len(set(named)) > 1
        if not named and unit["id"] in listed_in:
            named = [listed_in[unit["id"]]]
        if not named:
            stated = next(iter(unit["document_ids"]), "")
            named = [missing.setdefault(stated, stated or stable_hash("imported", "documents"))]
        unit["document_id"] = named[0]
    for document_id in missing.values():
        columns = {"title": "(not in the imported index)", "text": "", "creation_date": None, "metadata": None}
        number = {"id": document_id, "human_readable_id": numbering.next_number("document")}
        documents.append(number | columns | {"text_unit_ids": []})
    listed = {unit_id for document in documents for unit_id in document["text_unit_ids"]}
    notes.add(n_several, "text unit", "that span several documents {was} given to the first")
    notes.add(len(missing), "document", "that text units name and no row describes {was} added without text")
    notes.add(len(listed - set(units)), "text unit id", "of documents {was} dropped: no text unit has it")


def locate_text(text: str, document_text: str, start: int) -> tuple[int, str] | None:
    """Find a text unit in its document: the first match from `start` on, else the first match anywhere.

    Returns:
        (offset, matching text), or None. Metadata lines on top are removed if the text matches only without them.
    """
    body = text
    for _ in range(_MAX_METADATA_LINES):
        offset = document_text.find(body, start)
        offset = offset if offset >= 0 else document_text.find(body)
        if offset >= 0:
            return offset, body
        line = _METADATA_LINE.match(body)
        if line is None or not body[line.end() :].strip():
            return None
        body = body[line.end() :]
    return None


def _metadata_of(document: Row) -> dict:
    """Return the document's metadata as one flat object; a value that is not an object keeps its column's name."""
    metadata: dict = {}
    for column in ("metadata", "raw_data"):
        value = document.get(column)
        if isinstance(value, dict):
            metadata |= {key: item for key, item in value.items() if item is not None}
        elif value is not None:
            metadata[column] = value
    return metadata


def _move_metadata(unit: Row, text: str, document: Row, metadata: dict) -> None:
    prefix = unit["text"][: len(unit["text"]) - len(text)]
    for key, value in _METADATA_LINE.findall(prefix):
        value = value.removesuffix(".")
        if (key, value) != ("title", document["title"]):
            metadata.setdefault(key, value)
    unit["text"], unit["n_tokens"] = text, None


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
                of_record[unit["id"]] = None
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
        entity["text_unit_ids"] = list(entity["text_unit_ids"])  # in the source's order: `depth_first` follows it
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
