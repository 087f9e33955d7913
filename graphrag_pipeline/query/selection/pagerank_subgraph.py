"""The part of the mention graph that matters to a walk: found by mass, so that its size does not depend on the graph's.

An unweighted walk of three steps (names - text units - entities - text units) shows which text units a weighted one can
give much mass. Keep out: what a question says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphrag_pipeline.storage.arrays import expand_rows
from graphrag_pipeline.storage.mentions import Mentions

ABOUT_WEIGHT = 3.0
"""How much an edge weighs from a text unit to what its document is about (methods.md section 7)."""
UNIT_SEED_WEIGHT = 0.05
"""Weight of the text units among the starts of a walk (the same)."""
MAX_DEGREE = 256
"""An entity in more text units than this is a hub: the walk follows it only to where the question leads anyway."""


@dataclass(frozen=True)
class Seeds:
    """Where a walk starts.

    Attributes:
        entities, entity_weights: rows, and weights that add up to 1.
        text_units, unit_weights: rows, best first, and weights that add up to 1.
        trust: 0 to 1, how rare the names are.
    """

    entities: np.ndarray
    entity_weights: np.ndarray
    text_units: np.ndarray
    unit_weights: np.ndarray
    pagerank_share: float


def find_neighbourhood(mentions: Mentions, seeds: Seeds, max_units: int) -> np.ndarray:
    """Rows of the at most `max_units` text units that matter to a walk, ascending; the seeds among them.

    By the mass of an unweighted walk: from the named entities to their text units, from the best of those and the
    seeds to the entities in them, and on to the text units of these.
    """
    units, mass = _spread_to_units(mentions, seeds.entities, seeds.entity_weights, seeds.text_units)
    units, mass = _add(units, mass, seeds.text_units, UNIT_SEED_WEIGHT * seeds.unit_weights)
    best = _largest(mass, max_units // 4)
    entities, entity_mass = _spread_to_entities(mentions, units[best], mass[best])
    near = _largest(entity_mass, 2 * max_units)
    more, more_mass = _spread_to_units(mentions, entities[near], entity_mass[near], units)
    mass[np.isin(units, seeds.text_units)] += 2.0  # more than all the mass there is
    units, mass = _add(units, mass, more, more_mass)
    return np.sort(units[_largest(mass, max(max_units, len(seeds.text_units)))])


def _spread_to_units(
    mentions: Mentions, entities: np.ndarray, mass: np.ndarray, known: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Text units of entities, by mass; of a hub only those about it and those already known."""
    degrees = mentions.entity_indptr[entities + 1] - mentions.entity_indptr[entities]
    is_hub = degrees > MAX_DEGREE
    positions, places = expand_rows(mentions.entity_indptr, entities[~is_hub])
    owners, edges = np.flatnonzero(~is_hub)[positions], mentions.entity_edges[places].astype(np.int64)
    hub_owners, hub_edges = _edges_of_hubs(mentions, entities, np.flatnonzero(is_hub), known)
    owners, edges = np.r_[owners, hub_owners], np.r_[edges, hub_edges]
    weights = np.where(mentions.is_about[edges], ABOUT_WEIGHT, 1.0) / np.maximum(degrees[owners], 1)
    return _sum_by(mentions.text_units[edges].astype(np.int64), mass[owners] * weights)


def _edges_of_hubs(
    mentions: Mentions, entities: np.ndarray, hubs: np.ndarray, known: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(position in `entities`, edge) of hubs: to text units about them, and to known ones."""
    positions, places = expand_rows(mentions.about_indptr, entities[hubs])
    _, of_known = expand_rows(mentions.unit_indptr, known)
    ends = mentions.entities[of_known]
    order = np.argsort(entities[hubs])
    found = np.minimum(np.searchsorted(entities[hubs][order], ends), max(len(hubs) - 1, 0))
    is_kept = (entities[hubs][order][found] == ends) & ~mentions.is_about[of_known] if len(hubs) else ends < 0
    owners = np.r_[hubs[positions], hubs[order][found[is_kept]] if len(hubs) else hubs]
    return owners, np.r_[mentions.about_edges[places].astype(np.int64), of_known[is_kept]]


def _spread_to_entities(mentions: Mentions, units: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    positions, edges = expand_rows(mentions.unit_indptr, units)
    ends = mentions.entities[edges].astype(np.int64)
    weights = idf_of(mentions, ends) * np.where(mentions.is_about[edges], ABOUT_WEIGHT, 1.0)
    totals = np.bincount(positions, weights, minlength=len(units))
    return _sum_by(ends, mass[positions] * weights / totals[positions])


def _sum_by(rows: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    distinct, group = np.unique(rows, return_inverse=True)
    return distinct, np.bincount(group, mass, minlength=len(distinct))


def _add(rows: np.ndarray, mass: np.ndarray, more: np.ndarray, more_mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _sum_by(np.r_[rows, more], np.r_[mass, more_mass])


def _largest(mass: np.ndarray, n: int) -> np.ndarray:
    """Positions of the n rows with most mass, most first, ties to the lower row; rows are ascending."""
    worth = -np.round(mass, 12)
    if len(worth) <= n or n < 1:
        return np.argsort(worth, kind="stable")[:n]
    among = np.flatnonzero(worth <= np.partition(worth, n - 1)[n - 1])  # the n and all their ties: few to sort
    return among[np.argsort(worth[among], kind="stable")[:n]]


def idf_of(mentions: Mentions, entities: np.ndarray) -> np.ndarray:
    """Inverse document frequency: log(1 + text units / those that mention the entity), > 0."""
    n_units = len(mentions.unit_indptr) - 1
    degrees = mentions.entity_indptr[entities + 1] - mentions.entity_indptr[entities]
    return np.log1p(n_units / np.maximum(degrees, 1))
