"""The documents that a question names: by title, file or code, or by a code that is the value of a label in them.

"What was the root cause of TICKET-118?" is answered by the document TICKET-118, or by the one that says
"Incident: TICKET-118", however often others mention it. Keep out: how documents are named
(`text/document_names.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from graphrag_pipeline.filters import flatten_metadata
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_overview_word
from graphrag_pipeline.storage.arrays import distinct
from graphrag_pipeline.text.document_names import DOCUMENT, name_document

MAX_NEIGHBOURS = 200
"""Relationships of a name among which documents are looked for."""
ROW_WEIGHT = 0.5
"""Of the row of a thing: what is asked about a service is in other texts as often as in its row of a catalogue."""


def find_named_documents(index: IndexReader, question: str) -> dict[str, float]:
    """Return document id -> weight of the documents that a question names: 1, or `ROW_WEIGHT` of a row."""
    return {name: weight for found in find_documents_by_name(index, question) for name, weight in found.items()}


def find_documents_by_name(index: IndexReader, question: str) -> Iterator[dict[str, float]]:
    """Yield for each name in a question the documents that it names, with weights; see `find_named_documents`."""
    for rows in index.names.take_apart(question).names:
        found: dict[str, float] = {}
        entities = index.snapshot.take("entities", list(rows), ["title", "type", "names"])
        # A name of a thing, too, such as that of a service which is the name of a file about it, names the thing.
        is_document = all(entity["type"] == DOCUMENT for entity in entities)
        for row, entity in zip(rows, entities, strict=True):
            if is_document or entity["type"] != DOCUMENT:
                found |= _documents_of(index, row, entity)
        yield found


def asks_for_document(index: IndexReader, question: str) -> bool:
    """Return whether a question about a document asks for nothing in it, such as "Summarize TICKET-118"."""
    return not [word for word in index.names.take_apart(question).words if not is_overview_word(word)]


def _documents_of(index: IndexReader, row: int, entity: Mapping[str, Any]) -> dict[str, float]:
    """Return the documents that an entity is, else its own row and those with a label that names it, with weights."""
    names = {normalize_title(name) for name in (entity["title"], *(entity["names"] or ()))}
    if entity["type"] == DOCUMENT:
        own = index.snapshot.adjacency.of("entity_text_units", row).tolist()
        return {document["id"]: 1.0 for document in read_documents(index, own) if names_of(document) & names}
    own = index.snapshot.adjacency.of("entity_text_units", row)[:MAX_NEIGHBOURS]
    rows = [document["id"] for document in read_documents(index, own) if _row_name(document) in names]
    others = neighbours_of(index, row)
    types = index.snapshot.take("entities", others, ["type"])
    documents = [other for other, found in zip(others, types, strict=True) if found["type"] == DOCUMENT]
    units = [unit for other in documents for unit in index.snapshot.adjacency.of("entity_text_units", other).tolist()]
    labelled = [document["id"] for document in read_documents(index, units) if _values_of(document) & names]
    return dict.fromkeys(rows, ROW_WEIGHT) | dict.fromkeys(labelled, 1.0)


def neighbours_of(index: IndexReader, row: int) -> list[int]:
    """Return the entities that an entity has a relationship with."""
    related = index.snapshot.adjacency.of("entity_relationships", row)[:MAX_NEIGHBOURS]
    ends = [index.snapshot.adjacency.array(f"relationship_{end}")[related] for end in ("source", "target")]
    return [other for other in distinct(np.concatenate(ends)).tolist() if other != row]


def read_documents(index: IndexReader, units: Sequence[int] | np.ndarray) -> list[dict[str, Any]]:
    """Return the documents of some text units."""
    rows = distinct(np.asarray(units, dtype=np.int64))
    ids = {unit["document_id"] for unit in index.snapshot.take("text_units", rows, ["document_id"])}
    found = index.snapshot.rows_of("documents", sorted(ids))
    return index.snapshot.take("documents", found[found >= 0], ["id", "title", "path", "record", "metadata"])


def _row_name(document: dict[str, Any]) -> str | None:
    """Return the name of the thing that a row of a file is; None for any other document."""
    stem = f"{PurePosixPath(document['path'] or '').stem}: "
    return normalize_title((document["title"] or "").removeprefix(stem)) if document["record"] else None


def names_of(document: dict[str, Any]) -> set[str]:
    """Return the names of a document, normalized as titles of entities."""
    names = name_document(document["title"] or "", "" if document["record"] else document["path"] or "")
    return {normalize_title(name) for name in (names.main, *names.others)}


def _values_of(document: dict[str, Any]) -> set[str]:
    """Return the values of the labels of a document; a row has none, since its columns name other things, too."""
    if document["record"]:
        return set()
    values = flatten_metadata(json.loads(document["metadata"] or "{}"))
    return {normalize_title(value) for _, value in values if isinstance(value, str)}
