"""Candidates of a lazy search: text units by similarity to its subqueries, and the communities that hold them.

Text units that personalized PageRank reaches from the names in a subquery come first, as in local search's `graph`
strategy. Those of basic search follow. Neither reads a report. Keep out: the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.search.relevance_tests import Communities
from graphrag_pipeline.query.selection.graph_ranking import rank_with_graph
from graphrag_pipeline.query.selection.hybrid_ranking import rank_text_units
from graphrag_pipeline.query.selection.local_text_units import N_SEEDS

CANDIDATES_PER_TEST = 4
"""Text units ranked for each test of the budget: communities that are given up leave some untested."""
MIN_CANDIDATES = 100


@dataclass(frozen=True)
class RankedUnits:
    """Text units that may be tested, best first.

    Attributes:
        rows: int64 (n,).
        nearness: PageRank relevance to the names in a subquery, 0 to 1, float (n,); 0 without names.
    """

    rows: np.ndarray
    nearness: np.ndarray


def rank_candidates(index: IndexReader, subqueries: Sequence[str], budget: int) -> RankedUnits:
    """Return enough text units for so many tests, by their best rank for any subquery, then by nearness."""
    n = max(MIN_CANDIDATES, CANDIDATES_PER_TEST * budget)
    place: dict[int, int] = {}
    nearness: dict[int, float] = {}
    for subquery in subqueries:
        rows, scores = _rank(index, subquery, n)
        for i, (row, score) in enumerate(zip(rows.tolist(), scores.tolist(), strict=True)):
            place[row] = min(place.get(row, i), i)
            nearness[row] = max(nearness.get(row, 0.0), score)
    order = sorted(place, key=lambda row: (place[row], -nearness[row], row))[:n]
    return RankedUnits(np.array(order, dtype=np.int64), np.array([nearness[row] for row in order]))


def _rank(index: IndexReader, subquery: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and nearness: text units that PageRank reaches from its names, then the others of basic search."""
    ranked = rank_text_units(index, subquery, n)
    rows = index.snapshot.rows_of("text_units", [unit_id for unit_id, _ in ranked])
    named = index.names.take_apart(subquery)
    if not named.names:
        return rows, np.zeros(len(rows))
    scores = [score for _, score in ranked]
    reached, nearness = rank_with_graph(index, named, list(zip(rows.tolist(), scores, strict=True))[:N_SEEDS])
    is_reached = nearness > 0
    reached, nearness = reached[is_reached], nearness[is_reached]
    rest = rows[~np.isin(rows, reached)]
    return np.r_[reached, rest], np.r_[nearness, np.zeros(len(rest))]


def group_by_community(index: IndexReader, rows: np.ndarray) -> Communities:
    """Return the communities, on all levels, of the entities that text units mention.

    A text unit without entities belongs to its document; documents are numbered behind the communities.
    """
    adjacency, n_communities = index.snapshot.adjacency, index.snapshot.n_rows("communities")
    places, entities = adjacency.of_all("text_unit_entities", rows)
    positions, communities = adjacency.of_all("entity_communities", entities)
    pairs = set(zip(communities.tolist(), places[positions].tolist(), strict=True))
    lone = np.setdiff1d(np.arange(len(rows)), places[positions])
    documents = [record["document_id"] for record in index.snapshot.take("text_units", rows[lone], ["document_id"])]
    document_rows = index.snapshot.rows_of("documents", documents)
    pairs |= set(zip((n_communities + document_rows).tolist(), lone.tolist(), strict=True))
    members: dict[int, list[int]] = {}
    for community, place in sorted(pairs):
        members.setdefault(community, []).append(place)
    parents = _parent_rows(index)
    children: dict[int, list[int]] = {}
    for community in members:
        if community < n_communities and parents[community] >= 0:
            children.setdefault(int(parents[community]), []).append(community)
    roots = [community for community in members if community >= n_communities or parents[community] < 0]
    return Communities(members, children, roots)


def _parent_rows(index: IndexReader) -> np.ndarray:
    """Return the row of each community's parent; -1 for a root. int64 (n communities,)."""
    return index.rows_of_numbers("communities", "community", index.column("communities", "parent").tolist())
