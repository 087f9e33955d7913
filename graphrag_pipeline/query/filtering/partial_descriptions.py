"""Descriptions of entities and relationships from verbatim sentences of the text units that pass a filter.

Keep out: the choice of records that need one (`restricted_snapshot.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphrag_pipeline.text.tokens import count_tokens_each

if TYPE_CHECKING:
    from graphrag_pipeline.storage.snapshots import Snapshot

MAX_UNITS = 8
"""Most text units that are read for one description."""
MAX_SENTENCES = 3
"""Most sentences of one description."""


def describe_by_text_units(snapshot: Snapshot, table: str, row: int, max_tokens: int) -> str:
    """Return the first sentence of each text unit that names an entity, or both entities of a relationship.

    Args:
        snapshot: restricted, so its adjacency and mentions lead to text units that pass only.
        table: entities or relationships.

    Returns:
        At most `MAX_SENTENCES` sentences and `max_tokens` tokens, joined by spaces; "" if no sentence names them.
    """
    if not snapshot.manifest.sentences:
        return ""
    if table == "entities":
        entities = [row]
        units = _units_about_first(snapshot, row)
    else:
        entities = [int(snapshot.adjacency.array(f"relationship_{end}")[row]) for end in ("source", "target")]
        units = snapshot.adjacency.of("relationship_text_units", row)[:MAX_UNITS].tolist()
    sentences = dict.fromkeys(filter(None, (_read_sentence(snapshot, unit, entities) for unit in units)))
    taken: list[str] = []
    left = max_tokens
    for sentence, n_tokens in zip(sentences, count_tokens_each(list(sentences)), strict=True):
        if n_tokens < left and len(taken) < MAX_SENTENCES:
            taken.append(sentence)
            left -= n_tokens + 1
    return " ".join(taken)


def _units_about_first(snapshot: Snapshot, entity: int) -> list[int]:
    """Return the rows of the first text units of an entity; those whose document is about it come first."""
    mentions = snapshot.mentions
    of_entity = slice(*mentions.entity_indptr[entity : entity + 2])
    about = slice(*mentions.about_indptr[entity : entity + 2])
    edges = np.r_[mentions.about_edges[about][:MAX_UNITS], mentions.entity_edges[of_entity][:MAX_UNITS]]
    return list(dict.fromkeys(mentions.text_units[edges.astype(np.int64)].tolist()))[:MAX_UNITS]


def _read_sentence(snapshot: Snapshot, unit: int, entities: list[int]) -> str:
    """Return the first sentence of a text unit that names all given entities, on one line; "" if none does."""
    sentences = snapshot.sentences
    first, last = sentences.indptr[unit : unit + 2].tolist()
    starts = sentences.starts[first:last]
    naming = [{int(n) for n in np.searchsorted(starts, _places(snapshot, unit, e), "right") - 1} for e in entities]
    common = sorted(set.intersection(*naming) - {-1})
    if not common:
        return ""
    [record] = snapshot.take("text_units", [unit], ["text"])
    start, end = int(starts[common[0]]), int(sentences.ends[first + common[0]])
    return " ".join(record["text"][start:end].split())


def _places(snapshot: Snapshot, unit: int, entity: int) -> np.ndarray:
    """Return the character offsets of an entity's names in a text unit."""
    mentions = snapshot.mentions
    first, last = mentions.unit_indptr[unit : unit + 2].tolist()
    edges = first + np.flatnonzero(mentions.entities[first:last] == entity)
    spans = [slice(*mentions.places_indptr[edge : edge + 2]) for edge in edges.tolist()]
    return np.concatenate([mentions.starts[span] for span in spans]) if spans else np.zeros(0, dtype=np.int32)
