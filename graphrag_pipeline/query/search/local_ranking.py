"""Steps 2 to 4 of local search: reports, relationships and claims of the matched entities, best first.

The orders are those of Microsoft GraphRAG (`query/structured_search/local_search` there). Its ties follow the order of
its tables, which is that of ours. Each function returns rows of a contract table, and arrays with one value for each
row. Keep out: budgets (`local.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from graphrag_pipeline.query import records
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.settings.settings import LocalSearchSettings
from graphrag_pipeline.storage.arrays import nth_largest

# -------------------------------------------------------------------------------------------------------- 2 communities


def rank_reports(
    index: IndexReader, entity_rows: np.ndarray, settings: LocalSearchSettings
) -> tuple[np.ndarray, np.ndarray]:
    """Rank reports of the entities' communities, by (number of matched entities inside, rank), both descending.

    Communities are those of all levels down to `community_level`, or in each branch the deepest of these, so that no
    report repeats its parent's content (`report_levels`). Reports ranked below `min_community_rank` are left out. Ties
    go to the community that the matched entities reach first, each by Python's order of a set of its communities'
    numbers, as in Microsoft GraphRAG.

    Returns:
        Rows of reports, and the number of matched entities in each.
    """
    owners, communities = index.snapshot.adjacency.of_all("entity_communities", entity_rows)
    is_read = _read_mask(index, settings)[communities]
    owners, communities = owners[is_read], communities[is_read]
    numbers = index.column("communities", "community")[communities]
    found, n_inside = np.unique(numbers, return_counts=True)
    count_of = dict(zip(found.tolist(), n_inside.tolist(), strict=True))
    reached = list(dict.fromkeys(n for i in range(len(entity_rows)) for n in set(numbers[owners == i].tolist())))
    rows = index.rows_of_numbers("community_reports", "community", reached)
    counts = np.array([count_of[number] for number in reached], dtype=np.int64)
    rows, counts = rows[rows >= 0], counts[rows >= 0]
    rank = index.column("community_reports", "rank")[rows]
    order = np.lexsort((-rank, -counts))
    order = order[~(rank[order] < settings.min_community_rank)]
    return rows[order], counts[order]


def _read_mask(index: IndexReader, settings: LocalSearchSettings) -> np.ndarray:
    if not settings.reads_all_levels:
        return records.frontier_mask(index, settings.community_level)
    return index.row_mask("communities") & (index.column("communities", "level") <= settings.community_level)


# ------------------------------------------------------------------------------------------------------ 3 relationships


@dataclass(frozen=True)
class RankedRelationships:
    """Relationships of matched entities: first those between two of them, then those that lead outside.

    Attributes:
        rows: best first.
        n_touched: matched entities that the outside entity touches; of a relationship inside: 2, or as
            `rank_relationships_of_prefixes` says.
        is_inside: whether both entities are matched.
    """

    rows: np.ndarray
    n_touched: np.ndarray
    is_inside: np.ndarray

    @classmethod
    def none(cls) -> RankedRelationships:
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool))

    def led_by(self, rows: np.ndarray) -> RankedRelationships:
        """Return these relationships behind `rows`; those of `rows` that touch no matched entity have 0 of them."""
        place_of = {row: place for place, row in enumerate(self.rows.tolist())}
        known = np.array([place_of.get(row, -1) for row in rows.tolist()], dtype=np.int64)
        rest = np.setdiff1d(np.arange(len(self.rows)), known)
        n_touched, is_inside = np.append(self.n_touched, 0)[known], np.append(self.is_inside, False)[known]
        return RankedRelationships(
            np.r_[rows, self.rows[rest]], np.r_[n_touched, self.n_touched[rest]], np.r_[is_inside, self.is_inside[rest]]
        )

    def take(self, places: np.ndarray) -> RankedRelationships:
        return RankedRelationships(self.rows[places], self.n_touched[places], self.is_inside[places])


def rank_relationships(
    index: IndexReader, entity_rows: np.ndarray, max_outside: int, attribute: str = "rank"
) -> RankedRelationships:
    """Rank the relationships of matched entities.

    Those inside come by rank, those that lead outside by (number of matched entities that the outside entity touches,
    rank), at most `max_outside`. Rank is `combined_degree`, or the weight if `attribute` says so. Ties inside go to the
    lower row. Ties outside go to relationships whose source is matched, then to the lower row. `n_touched` is 2 inside.
    """
    network = _Network(index, entity_rows, attribute, max_outside)
    for _ in entity_rows:
        network.add_entity()
    found = network.rank(max_outside)
    return RankedRelationships(found.rows, np.where(found.is_inside, 2, found.n_touched), found.is_inside)


def rank_relationships_of_prefixes(
    index: IndexReader, entity_rows: np.ndarray, n_outside: int, attribute: str = "rank"
) -> Iterator[RankedRelationships]:
    """Rank the relationships of the first entity, of the first two, and so on, in the order of `rank_relationships`.

    Args:
        n_outside: most relationships that lead outside, for each entity.

    Yields:
        The relationships of each number of entities. `n_touched` is what Microsoft GraphRAG shows as `links`. Inside,
        it is the number when the relationship last led outside. It is 0 where only one relationship led outside so far.
    """
    network = _Network(index, entity_rows, attribute, n_outside * len(entity_rows))
    for n in range(1, len(entity_rows) + 1):
        network.add_entity()
        found = network.rank(n_outside * n)
        links = np.where(found.is_inside, network.links_inside(found.rows), network.links_outside(found.n_touched))
        yield RankedRelationships(found.rows, links, found.is_inside)


class _Network:
    """The relationships of matched entities, which are added one by one, in order.

    A relationship is in the arrays once for each matched entity at its ends. Adding an entity costs its own
    relationships, so an entity with very many of them is not read again for each entity behind it. Relationships that
    can never be among the first `max_outside` are left out at the start (`_may_be_first`).
    """

    def __init__(self, index: IndexReader, entity_rows: np.ndarray, attribute: str, max_outside: int) -> None:
        adjacency = index.snapshot.adjacency
        owners, rows = adjacency.of_all("entity_relationships", entity_rows)
        source, target = (adjacency.array(f"relationship_{end}").take(rows) for end in ("source", "target"))
        matched = entity_rows.astype(source.dtype).take(owners)
        other = source ^ target ^ matched  # the end that is not matched; a hub has very many relationships
        rank = _rank_by(index, rows, attribute)
        self._is_matched = np.zeros(index.snapshot.n_rows("entities"), dtype=bool)
        self._touches = np.zeros(len(self._is_matched), dtype=np.int64)
        kept = self._may_be_first(entity_rows, owners, other, rank, max(max_outside, 2))
        self._entities, self._rows = entity_rows, rows[kept].astype(np.int64)
        self._is_target, self._other, self._rank = target[kept] == matched[kept], other[kept], rank[kept]
        self._starts = np.searchsorted(owners[kept], np.arange(len(entity_rows) + 1)).tolist()
        self._inside = np.zeros(0, dtype=np.int64)
        self._links: dict[int, int] = {}  # row of a relationship inside -> matched entities when it led outside
        self._n_entities, self._n_outside, self._links_of_only = 0, 0, 0

    def _may_be_first(
        self, entity_rows: np.ndarray, owners: np.ndarray, other: np.ndarray, rank: np.ndarray, n: int
    ) -> np.ndarray:
        """Return the positions of the relationships that can be among the first n, ascending.

        An outside entity that only one matched entity touches ranks behind all others, by rank alone. So of these, the
        n with the highest rank of each matched entity suffice, and all that are tied with the last.

        Args:
            n: at least 2, so that the number of relationships that lead outside stays 0, 1 or more.
        """
        starts = np.searchsorted(owners, np.arange(len(entity_rows) + 1)).tolist()
        if max(np.diff(starts), default=0) <= n:
            return np.arange(len(owners))
        touches = np.bincount(other, minlength=len(self._touches))
        touches[entity_rows] = 2
        is_kept = (touches > 1).take(other)
        for start, end in pairwise(starts):
            single = start + np.flatnonzero(~is_kept[start:end])
            ranks = rank.take(single)
            is_kept[single] = ranks >= nth_largest(ranks, n) if len(ranks) > n else True
        return np.flatnonzero(is_kept)

    def add_entity(self) -> None:
        """Add the next entity."""
        start, end = self._starts[self._n_entities : self._n_entities + 2]
        entity, others = self._entities[self._n_entities], self._other[start:end]
        inside = start + np.flatnonzero(self._is_matched[others])
        if len(inside):
            links = int(self._touches[entity]) if self._n_outside > 1 else self._links_of_only
            self._links |= dict.fromkeys(self._rows[inside].tolist(), links)
            self._inside = np.concatenate((self._inside, inside))
        self._is_matched[entity] = True
        self._touches[others] += 1
        self._n_entities += 1
        self._count_outside(start)

    def _count_outside(self, newest: int) -> None:
        outside = self._outside()
        if len(outside) == 1:  # the number of its links is only set while there are others
            place = int(outside[0])
            had_others = self._n_outside > 1
            known = int(self._touches[self._other[place]]) if had_others else self._links_of_only
            self._links_of_only = 0 if place >= newest else known
        self._n_outside = len(outside)

    def _outside(self) -> np.ndarray:
        end = self._starts[self._n_entities]
        return np.flatnonzero(~self._is_matched[self._other[:end]])

    def rank(self, max_outside: int) -> RankedRelationships:
        """Return the relationships of the entities added so far, with the number of entities touched outside."""
        inside, outside = self._inside, self._outside()
        inside = inside[np.lexsort((self._rows[inside], -self._rank[inside]))]
        touched = self._touches[self._other[outside]]
        if len(outside) > max_outside > 0:
            worth = (touched << 32) + self._rank[outside]
            is_near = worth >= nth_largest(worth, max_outside)
            outside, touched = outside[is_near], touched[is_near]
        keys = (self._rows[outside], self._is_target[outside], -self._rank[outside], -touched)
        outside = outside[np.lexsort(keys)][:max_outside]
        places = np.concatenate((inside, outside))
        is_inside = np.arange(len(places)) < len(inside)
        return RankedRelationships(self._rows[places], self._touches[self._other[places]], is_inside)

    def links_inside(self, rows: np.ndarray) -> np.ndarray:
        return np.array([self._links.get(row, 0) for row in rows.tolist()], dtype=np.int64)

    def links_outside(self, touched: np.ndarray) -> np.ndarray:
        return touched if self._n_outside > 1 else np.full(len(touched), self._links_of_only)


def _rank_by(index: IndexReader, rows: np.ndarray, attribute: str) -> np.ndarray:
    """Return integers that order relationships by an attribute."""
    if attribute == "weight":
        return np.unique(index.column("relationships", "weight")[rows], return_inverse=True)[1]
    return index.column("relationships", "combined_degree").take(rows)


# ------------------------------------------------------------------------------------------------------------- 4 claims


def rank_claims(index: IndexReader, entity_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the claims about the matched entities: those of the first entity, then of the second, in record order.

    Returns:
        Rows of claims, and the position of the entity in `entity_rows` that each is about.
    """
    owners, rows = index.snapshot.adjacency.of_all("entity_covariates", entity_rows)
    return rows.astype(np.int64), owners


def take_turns(owners: np.ndarray) -> np.ndarray:
    """Return an order in which the first claim of each entity comes before the second of any.

    Args:
        owners: ascending position of the entity that each claim is about.
    """
    first = np.searchsorted(owners, owners)
    return np.lexsort((owners, np.arange(len(owners)) - first))
