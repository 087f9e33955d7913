"""Neighbourhood of the mention graph for local PageRank, of a size that does not depend on the graph.

Three steps push the probability mass of the seeds outwards: names -> text units -> entities -> text units. Edges weigh
idf and ABOUT_WEIGHT only, without similarity to the question. The text units with most mass form the neighbourhood.
Local push (Andersen, Chung and Lang 2006, "Local graph partitioning using PageRank vectors") bounds the work likewise.
Keep out: similarity to the question.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphrag_pipeline.storage.arrays import Mentions, expand_rows, group_rows

ABOUT_WEIGHT = 3.0
"""Factor of a mention edge if the title of the text unit's document names the entity."""
UNIT_SEED_WEIGHT = 0.05
"""Weight of all text unit seeds together; the entity seeds weigh 1 (passage node weight of HippoRAG 2)."""
MAX_DEGREE = 256
"""An entity in more text units than this is a hub: only its edges to text units about it or already found count."""


@dataclass(frozen=True)
class Seeds:
    """Seeds of personalised PageRank.

    Attributes:
        entities, entity_weights: rows, and weights that add up to 1.
        text_units, unit_weights: rows, best first, and weights that add up to 1.
        pagerank_share: 0 to 1, the share of PageRank in the final score; higher for rarer names.
    """

    entities: np.ndarray
    entity_weights: np.ndarray
    text_units: np.ndarray
    unit_weights: np.ndarray
    pagerank_share: float


def find_neighbourhood(mentions: Mentions, seeds: Seeds, max_units: int) -> np.ndarray:
    """Return the rows of the text units with most mass, at most `max_units` or all seeds, ascending.

    Mass goes from the named entities to their text units. From the best of these and the seeds it goes to the entities
    that they mention, and from the best of those to their text units. The seeds are always among the result.
    """
    # `units` and `entities` are ascending rows; `mass` of the same length is the probability at each.
    units, mass = _spread_to_units(mentions, seeds.entities, seeds.entity_weights, seeds.text_units)
    n_units = len(mentions.unit_indptr) - 1
    of_seeds = UNIT_SEED_WEIGHT * seeds.unit_weights
    units, mass = _sum_by(np.concatenate((units, seeds.text_units)), np.concatenate((mass, of_seeds)), n_units)
    best = _largest(mass, max_units // 4)
    entities, entity_mass = _spread_to_entities(mentions, units[best], mass[best])
    near = _largest(entity_mass, 2 * max_units)
    more, more_mass = _spread_to_units(mentions, entities[near], entity_mass[near], units)
    mass[np.searchsorted(units, seeds.text_units)] += 2.0  # more than the total mass, so that seeds are never cut
    units, mass = _sum_by(np.concatenate((units, more)), np.concatenate((mass, more_mass)), n_units)
    return np.sort(units[_largest(mass, max(max_units, len(seeds.text_units)))])


def _spread_to_units(
    mentions: Mentions, entities: np.ndarray, mass: np.ndarray, known: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the text units of entities and their mass; of a hub, only those about it and those in `known`."""
    degrees = mentions.entity_indptr[entities + 1] - mentions.entity_indptr[entities]
    is_hub = degrees > MAX_DEGREE
    positions, places = expand_rows(mentions.entity_indptr, entities[~is_hub])
    owners, edges = np.flatnonzero(~is_hub)[positions], mentions.entity_edges[places].astype(np.int64)
    hub_owners, hub_edges = _edges_of_hubs(mentions, entities, np.flatnonzero(is_hub), known)
    owners, edges = np.concatenate((owners, hub_owners)), np.concatenate((edges, hub_edges))
    weights = np.where(mentions.is_about[edges], ABOUT_WEIGHT, 1.0) / np.maximum(degrees[owners], 1)
    return _sum_by(mentions.text_units[edges], mass[owners] * weights, len(mentions.unit_indptr) - 1)


def _edges_of_hubs(
    mentions: Mentions, entities: np.ndarray, hubs: np.ndarray, known: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return (position in `entities`, edge) of the hubs' edges to text units about them and to known ones."""
    if not len(hubs):
        return hubs, hubs
    positions, places = expand_rows(mentions.about_indptr, entities[hubs])
    _, of_known = expand_rows(mentions.unit_indptr, known)
    ends = mentions.entities[of_known]
    order = np.argsort(entities[hubs])
    found = np.minimum(np.searchsorted(entities[hubs][order], ends), len(hubs) - 1)
    is_kept = (entities[hubs][order][found] == ends) & ~mentions.is_about[of_known]
    owners = np.concatenate((hubs[positions], hubs[order][found[is_kept]]))
    return owners, np.concatenate((mentions.about_edges[places].astype(np.int64), of_known[is_kept]))


def _spread_to_entities(mentions: Mentions, units: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    positions, edges = expand_rows(mentions.unit_indptr, units)
    ends = mentions.entities[edges]
    weights = idf_of(mentions, ends) * np.where(mentions.is_about[edges], ABOUT_WEIGHT, 1.0)
    totals = np.bincount(positions, weights, minlength=len(units))
    return _sum_by(ends, mass[positions] * weights / totals[positions], len(mentions.entity_indptr) - 1)


def _sum_by(rows: np.ndarray, mass: np.ndarray, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    found, group = group_rows(rows, n_rows)
    return found, np.bincount(group, mass, minlength=len(found))


def _largest(mass: np.ndarray, n: int) -> np.ndarray:
    """Return the positions of the n rows with most mass, most first, ties to the lower row; rows are ascending."""
    worth = -np.round(mass, 12)
    if len(worth) <= n or n < 1:
        return np.argsort(worth, kind="stable")[:n]
    among = np.flatnonzero(worth <= np.partition(worth, n - 1)[n - 1])  # sort only the n largest and their ties
    return among[np.argsort(worth[among], kind="stable")[:n]]


def idf_of(mentions: Mentions, entities: np.ndarray) -> np.ndarray:
    """Return idf = ln(1 + N / n) > 0: N text units, of which n mention the entity."""
    n_units = len(mentions.unit_indptr) - 1
    degrees = mentions.entity_indptr[entities + 1] - mentions.entity_indptr[entities]
    return np.log1p(n_units / np.maximum(degrees, 1))
