"""Candidates of a lazy search: text units by similarity to its subqueries, and the communities that hold them.

Text units that personalized PageRank reaches from the names in a subquery come first, as in local search's `graph`
strategy. Those of basic search follow. Neither reads a report.

Best-first relevance tests under one budget: the order of the tests, and when a community is given up.

The idea of LazyGraphRAG (Microsoft Research, 2024): similarity gives the first text units to test, and the communities
of the graph show where more tests pay. In each round the `WIDTH` best communities, by their best untested text unit,
are tested a batch each. A community with relevant text units is replaced by its children. A community with
`max_failures` irrelevant ones in a row is given up with its untested rest. A text unit of several communities is tested
once. Pure functions of positions.

Keep out: the tests.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.selection.graph_ranking import rank_with_graph
from graphrag_pipeline.query.selection.hybrid_ranking import rank_text_units
from graphrag_pipeline.query.selection.local_text_units import N_SEEDS

WIDTH = 8
"""Communities tested at once, so that a model's calls run side by side."""

Test = Callable[[list[list[int]]], list[list[bool]]]
"""Batches of candidates -> for each whether it is relevant."""


@dataclass(frozen=True)
class Communities:
    """The candidates of each community; a candidate is its rank by similarity, 0 the best.

    Attributes:
        members: community -> its candidates, ascending.
        children: community -> communities one level below that hold some of them.
        roots: where the search begins; together they hold every candidate.
    """

    members: Mapping[int, Sequence[int]]
    children: Mapping[int, Sequence[int]]
    roots: Sequence[int]


@dataclass(frozen=True)
class Explored:
    """Candidates in the order in which they were tested, and the outcome for communities.

    Attributes:
        entered: communities in which a candidate was tested.
        pruned: those of them that were given up.
        is_exhausted: True if nothing was left to test; False if the budget was used.
    """

    tested: tuple[int, ...]
    entered: tuple[int, ...]
    pruned: tuple[int, ...]
    is_exhausted: bool


@dataclass
class _State:
    """The tests so far; `queue` holds (best untested candidate, community)."""

    communities: Communities
    verdicts: dict[int, bool] = field(default_factory=dict)
    failures: dict[int, int] = field(default_factory=dict)
    pruned: list[int] = field(default_factory=list)
    queue: list[tuple[int, int]] = field(default_factory=list)

    def push(self, community: int) -> None:
        """Queue a community, if it has an untested candidate."""
        best = next((c for c in self.communities.members[community] if c not in self.verdicts), None)
        if best is not None:
            heapq.heappush(self.queue, (best, community))

    def judge(self, community: int, batch: Sequence[int], relevant: Sequence[bool], max_failures: int) -> None:
        """Record the verdicts on a batch of a community, and queue the communities that follow."""
        failures = self.failures.get(community, 0)
        for candidate, is_relevant in zip(batch, relevant, strict=True):
            self.verdicts[candidate] = is_relevant
            failures = 0 if is_relevant else failures + 1
        self.failures[community] = failures
        if failures >= max_failures:
            self.pruned.append(community)
            return
        children = self.communities.children.get(community, ()) if any(relevant) else ()
        for following in children or (community,):
            self.push(following)


def explore(communities: Communities, test: Test, budget: int, max_failures: int, batch_size: int) -> Explored:
    """Test candidates best first until the budget is used or no community is left.

    Args:
        budget: most candidates tested.
        max_failures: irrelevant candidates in a row after which a community is given up.
        batch_size: most candidates of a community tested at once.
    """
    state = _State(communities)
    for root in communities.roots:
        state.push(root)
    while state.queue and len(state.verdicts) < budget:
        batches = _next_batches(state, budget - len(state.verdicts), min(batch_size, max_failures))
        verdicts = test([batch for _, batch in batches])
        for (community, batch), relevant in zip(batches, verdicts, strict=True):
            state.judge(community, batch, relevant, max_failures)
    return Explored(
        tested=tuple(state.verdicts),
        entered=tuple(sorted(state.failures)),
        pruned=tuple(sorted(state.pruned)),
        is_exhausted=not state.queue,
    )


def _next_batches(state: _State, n_left: int, batch_size: int) -> list[tuple[int, list[int]]]:
    """Return (community, untested candidates) of the best in the queue; no candidate twice, at most `n_left` in all."""
    taken: set[int] = set()
    batches: list[tuple[int, list[int]]] = []
    while state.queue and len(batches) < WIDTH and len(taken) < n_left:
        _, community = heapq.heappop(state.queue)
        untested = [c for c in state.communities.members[community] if c not in state.verdicts and c not in taken]
        batch = untested[: min(batch_size, n_left - len(taken))]
        if batch:
            taken.update(batch)
            batches.append((community, batch))
    return batches


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
