"""Text of documents by offsets, the mentions in it, and one text unit in full. Keep out: lists of documents."""

from __future__ import annotations

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.index_reader import SnapshotReader
from graphrag_pipeline.query.records import read_text_units
from graphrag_pipeline.reading.entities import link_entities
from graphrag_pipeline.reading.lookup import find_by_key, find_record
from graphrag_pipeline.reading.rows import DocumentText, MentionPlace, TextUnitPage
from graphrag_pipeline.reading.shared_keys import shared_key


def read_text(reader: SnapshotReader, name: str, start: int = 0, end: int | None = None) -> DocumentText:
    """Return a part of the text of the document that a name means.

    Args:
        start, end: character offsets, as in citations; an end behind the text is that of the text.

    Raises:
        RecordNameError: see `lookup.find_record`.
        PipelineError: the part begins behind the end of the text, or ends before it begins.
    """
    row = find_record(reader, "document", name)
    [record] = reader.snapshot.take("documents", [row], ["human_readable_id", "id", "title", "text"])
    text = record["text"]
    stop = len(text) if end is None else min(end, len(text))
    if not 0 <= start <= stop:
        raise PipelineError(
            f"characters {start:,} to {stop:,} are not in the document, which has {len(text):,}; "
            "choose 0 <= start <= end"
        )
    number, own_id, key = record["human_readable_id"], record["id"], shared_key(reader.snapshot, record["id"])
    return DocumentText(number, own_id, key, record["title"], start, stop, len(text), text[start:stop])


def read_mentions(
    reader: SnapshotReader, name: str, start: int = 0, end: int | None = None, n_most: int = 1_000
) -> tuple[tuple[MentionPlace, ...], int]:
    """Return the places where the document that a name means writes names of entities, in reading order.

    Args:
        start, end: character offsets; a mention lies between them.
        n_most: maximum of mentions.

    Returns:
        The mentions, and the number of all between the offsets. Overlapping text units count a place once.

    Raises:
        RecordNameError: see `lookup.find_record`.
    """
    row = find_record(reader, "document", name)
    [record] = reader.snapshot.take("documents", [row], ["text_unit_ids"])
    units = reader.snapshot.rows_of("text_units", record["text_unit_ids"] or [])
    places = _places(reader, units[units >= 0])
    kept = sorted(place for place in places if start <= place[0] and (end is None or place[1] <= end))
    shown = kept[:n_most]
    links = link_entities(reader, [entity for _, _, entity in shown])
    mentions = (
        MentionPlace(first, last, link.number, link.title, link.type)
        for (first, last, _), link in zip(shown, links, strict=True)
    )
    return tuple(mentions), len(kept)


def _places(reader: SnapshotReader, units: np.ndarray) -> set[tuple[int, int, int]]:
    """Return (start, end, row of the entity) of the mentions of text units, as offsets in their document."""
    mentions = reader.snapshot.mentions
    found = set()
    for row, unit in zip(units.tolist(), read_text_units(reader, units, np.zeros(len(units))), strict=True):
        edges = range(int(mentions.unit_indptr[row]), int(mentions.unit_indptr[row + 1]))
        for edge in edges:
            for place in range(int(mentions.places_indptr[edge]), int(mentions.places_indptr[edge + 1])):
                first, last = unit.place_of(int(mentions.starts[place]), int(mentions.ends[place]))
                if first is not None and last is not None:
                    found.add((first, last, int(mentions.entities[edge])))
    return found


def read_text_unit(reader: SnapshotReader, key: str, n_most: int = 50) -> TextUnitPage:
    """Return the text unit of a number or id.

    Args:
        n_most: maximum of entities.

    Raises:
        RecordNameError: none that may be read has this key.
    """
    row = find_by_key(reader, "text_unit", key)
    [unit] = read_text_units(reader, np.array([row]), np.zeros(1))
    entities = reader.snapshot.adjacency.of("text_unit_entities", row)
    degrees = reader.column("entities", "degree")[entities]
    leading = entities[np.lexsort((entities, -degrees))]
    return TextUnitPage(
        unit.human_readable_id,
        unit.id,
        unit.document_title,
        unit.document_id,
        unit.document_path,
        unit.start,
        unit.end,
        unit.n_tokens,
        unit.text,
        link_entities(reader, leading[:n_most].tolist()),
        len(entities),
    )
