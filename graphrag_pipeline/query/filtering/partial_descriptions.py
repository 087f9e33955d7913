"""Descriptions of entities and relationships from those of their text units that pass a filter: verbatim sentences.

Keep out: which records need one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphrag_pipeline.text.tokens import count_tokens_each

if TYPE_CHECKING:
    from graphrag_pipeline.storage.snapshots import Snapshot

MAX_UNITS = 8
MAX_SENTENCES = 3
"""What one description is made from: text units looked at, sentences taken."""


def describe_by_text_units(snapshot: Snapshot, table: str, row: int, max_tokens: int) -> str:
    """The first sentences that name an entity, or both entities of a relationship, one of each text unit.

    Args:
        snapshot: whose adjacency and mentions lead to passing text units only.
        table: entities or relationships.

    Returns:
        Sentences with a space between them, at most `max_tokens` tokens; "" where no sentence names them.
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
    """Rows of the first text units of an entity, those that are about it before the others."""
    mentions = snapshot.mentions
    of_entity = slice(*mentions.entity_indptr[entity : entity + 2])
    about = slice(*mentions.about_indptr[entity : entity + 2])
    edges = np.r_[mentions.about_edges[about][:MAX_UNITS], mentions.entity_edges[of_entity][:MAX_UNITS]]
    return list(dict.fromkeys(mentions.text_units[edges.astype(np.int64)].tolist()))[:MAX_UNITS]


def _read_sentence(snapshot: Snapshot, unit: int, entities: list[int]) -> str:
    """The first sentence of a text unit that names all of some entities, on one line; "" if none does."""
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
    """Character offsets at which a text unit writes an entity's name."""
    mentions = snapshot.mentions
    first, last = mentions.unit_indptr[unit : unit + 2].tolist()
    edges = first + np.flatnonzero(mentions.entities[first:last] == entity)
    spans = [slice(*mentions.places_indptr[edge : edge + 2]) for edge in edges.tolist()]
    return np.concatenate([mentions.starts[span] for span in spans]) if spans else np.zeros(0, dtype=np.int32)
