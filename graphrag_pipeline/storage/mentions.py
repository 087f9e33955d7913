"""The mention graph of a snapshot: the entities that each text unit mentions, the places, and the topic.

One *mention edge* is one (text unit, entity) pair, in text unit row order, then by entity. Arrays, in the folder of the
adjacency:
    `text_unit_mentions_indptr` int64 (n text units + 1): text unit i has the edges numbered indptr[i] to indptr[i + 1];
    `mention_entities`, `mention_text_units` int32: the two ends of each edge;
    `mention_is_about` bool: the title of the text unit's document names the entity;
    `entity_mentions_indptr`, `entity_mentions_indices`: the edges of each entity, in compressed sparse rows;
    `entity_about_indptr`, `entity_about_indices`: the edges of each entity with `mention_is_about`;
    `mention_places_indptr` int64 (n edges + 1), `mention_starts`, `mention_ends` int32: the places of the entity's
    names in the text unit's text, as character offsets; empty if the text has none of the names.
Keep out: weights of edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from graphrag_pipeline.arrow_columns import compress, list_pairs, positions
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.storage.arrays import ArrayFolder
from graphrag_pipeline.text.languages import joins

_BATCH = 4_096
"""Number of text units that are searched for names at a time."""


def build_mentions(tables: Mapping[str, pa.Table]) -> dict[str, np.ndarray]:
    """Return all arrays by name, for contract tables in file order."""
    entities, text_units = tables["entities"], tables["text_units"]
    n_entities, n_units = len(entities), len(text_units)
    entity_rows, unit_rows = list_pairs(entities["text_unit_ids"], text_units["id"])
    topics = _topics(tables)
    about = np.flatnonzero(topics >= 0)
    indptr, ends = compress(np.r_[unit_rows, about], np.r_[entity_rows, topics[about]], n_units)
    units = np.repeat(np.arange(n_units, dtype=np.int32), np.diff(indptr))
    is_about = topics[units] == ends
    entity_indptr, entity_edges = compress(ends, np.arange(len(ends)), n_entities)
    about_indptr, about_edges = compress(ends[is_about], np.flatnonzero(is_about), n_entities)
    return {
        "text_unit_mentions_indptr": indptr,
        "mention_entities": ends,
        "mention_text_units": units,
        "mention_is_about": is_about,
        "entity_mentions_indptr": entity_indptr,
        "entity_mentions_indices": entity_edges,
        "entity_about_indptr": about_indptr,
        "entity_about_indices": about_edges,
        **_find_places(text_units, indptr, ends, entities["names"]),
    }


def _topics(tables: Mapping[str, pa.Table]) -> np.ndarray:
    """Return the row of the entity that the title of each text unit's document names, -1 without one: int64."""
    documents = tables["documents"]
    titles = pa.array([normalize_title(title) for title in documents["title"].to_pylist()], pa.string())
    of_document = positions(titles, tables["entities"]["title"])
    document = positions(tables["text_units"]["document_id"], documents["id"])
    return np.where(document >= 0, np.r_[of_document, -1][document], -1)


def _find_places(
    text_units: pa.Table, indptr: np.ndarray, ends: np.ndarray, names: pa.ChunkedArray
) -> dict[str, np.ndarray]:
    forms = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    counts = np.zeros(len(ends), dtype=np.int64)
    starts: list[np.ndarray] = []
    stops: list[np.ndarray] = []
    first = 0
    for batch in text_units.select(["text"]).to_batches(max_chunksize=_BATCH):  # a batch in memory at a time
        bounds = indptr[first : first + len(batch) + 1]
        written = forms.take(pa.array(ends[bounds[0] : bounds[-1]])).to_pylist()
        edges = range(bounds[0], bounds[-1])
        owners = np.repeat(np.arange(len(batch)), np.diff(bounds)).tolist()
        texts = batch["text"].to_pylist()
        found = [find_names(texts[owner], own or ()) for owner, own in zip(owners, written, strict=True)]
        counts[edges.start : edges.stop] = [len(places) for places in found]
        pairs = np.array([place for places in found for place in places], dtype=np.int32).reshape(-1, 2)
        starts.append(pairs[:, 0])
        stops.append(pairs[:, 1])
        first += len(batch)
    return {
        "mention_places_indptr": np.r_[0, np.cumsum(counts)],
        "mention_starts": np.concatenate(starts) if starts else np.zeros(0, dtype=np.int32),
        "mention_ends": np.concatenate(stops) if stops else np.zeros(0, dtype=np.int32),
    }


def find_names(text: str, names: Sequence[str]) -> list[tuple[int, int]]:
    """Return (start, end) of every place where a text has one of the names as whole words; longest names win."""
    longest: dict[int, int] = {}
    for name in names:
        start = text.find(name) if name else -1
        while start >= 0:
            end = start + len(name)
            before, after = text[start - 1 : start], text[end : end + 1]
            if not (joins(before, name[0]) or joins(name[-1], after)) and end > longest.get(start, 0):
                longest[start] = end
            start = text.find(name, end)
    return sorted(longest.items())


class Mentions:
    """The mention graph of a snapshot, memory-mapped.

    Args:
        arrays: the folder that holds them.
    """

    def __init__(self, arrays: ArrayFolder) -> None:
        self.unit_indptr = arrays.array("text_unit_mentions_indptr")
        self.entity_indptr = arrays.array("entity_mentions_indptr")
        self.entity_edges = arrays.array("entity_mentions_indices")
        self.about_indptr = arrays.array("entity_about_indptr")
        self.about_edges = arrays.array("entity_about_indices")
        self.entities = arrays.array("mention_entities")
        self.text_units = arrays.array("mention_text_units")
        self.is_about = arrays.array("mention_is_about")
        self.places_indptr = arrays.array("mention_places_indptr")
        self.starts = arrays.array("mention_starts")
        self.ends = arrays.array("mention_ends")
