"""Repair of imported documents and text units: every text unit gets its document and its offsets.

Pure. Keep out: links of text units to entities and claims.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.interchange.imported_rows import ImportedNumbering, RepairNotes, Row, Rows

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
            unit["header_start"] = unit["header_end"] = None
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
