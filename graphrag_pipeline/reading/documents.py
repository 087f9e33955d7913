"""Documents, in full: metadata, text, text units and the entities that they mention."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphrag_pipeline.query.index_reader import SnapshotReader
from graphrag_pipeline.reading.entities import link_entities
from graphrag_pipeline.reading.lookup import find_record
from graphrag_pipeline.reading.pages import DocumentPage, TextUnitLink


def read_document(reader: SnapshotReader, name: str, n_most: int = 10) -> DocumentPage:
    """Return the document that a path, file name, title, number or id means.

    Args:
        n_most: maximum of text units, and of entities.

    Raises:
        RecordNameError: see `lookup.find_record`.
    """
    row = find_record(reader, "document", name)
    [record] = reader.snapshot.take("documents", [row])
    units = reader.snapshot.rows_of("text_units", record["text_unit_ids"] or [])
    units = units[units >= 0]
    entities, counts = _count_entities(reader, units)
    return DocumentPage(
        id=record["id"],
        number=record["human_readable_id"],
        title=record["title"],
        path=record["path"] or "",
        record=record["record"] or "",
        creation_date=record["creation_date"],
        metadata=read_metadata(record["metadata"]),
        text=record["text"],
        text_units=_link_text_units(reader, units[:n_most]),
        n_text_units=len(units),
        entities=link_entities(reader, entities[:n_most].tolist(), counts[:n_most].tolist()),
        n_entities=len(entities),
    )


def read_metadata(text: str | None) -> Mapping[str, Any]:
    """Return the metadata of a document; an import may hold text that is not a JSON object."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = text
    return found if isinstance(found, dict) else {"metadata": found}


def _count_entities(reader: SnapshotReader, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the entities of text units with the number that mention each, most first, then by degree."""
    _, mentioned = reader.snapshot.adjacency.of_all("text_unit_entities", units)
    entities, counts = np.unique(mentioned, return_counts=True)
    degrees = reader.column("entities", "degree")[entities]
    order = np.lexsort((entities, -degrees, -counts))
    return entities[order], counts[order]


def _link_text_units(reader: SnapshotReader, units: np.ndarray) -> tuple[TextUnitLink, ...]:
    positions, _ = reader.snapshot.adjacency.of_all("text_unit_entities", units)
    counts = np.bincount(positions, minlength=len(units)).tolist()
    found = reader.snapshot.take("text_units", units, ["human_readable_id", "start", "end", "n_tokens"])
    return tuple(
        TextUnitLink(one["human_readable_id"], one["start"], one["end"], one["n_tokens"], count)
        for one, count in zip(found, counts, strict=True)
    )
