"""Local search: the entities of a question and the records around them.

The method of GraphRAG's local search (Edge et al. 2024, arXiv 2404.16130, and microsoft/graphrag). Entities are matched
(`understanding/entity_matching.py`). The communities, relationships, claims and text units around them come from the
snapshot's adjacency arrays (row numbers; no table is scanned per query). `select_local_context` packs all into one
token budget; a strategy chooses the text units (`selection/local_text_units.py`). "Row" means the position of a record
in its contract table. Keep out: writing the answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphrag_pipeline.query import records
from graphrag_pipeline.query.context import PART_OVERHEAD, Part, pack_parts, row_costs
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.basic import read_within
from graphrag_pipeline.query.selection.candidates import Limits, Pick
from graphrag_pipeline.query.selection.local_text_units import (
    DEPTH_FIRST,
    TextUnitPool,
    gather_text_units,
    informed_entities,
    pick_of,
    pick_text_units,
    score_picks,
)
from graphrag_pipeline.query.understanding.conversation import read_history
from graphrag_pipeline.query.understanding.entity_matching import Match, NamedEntities, match_entities, name_entities
from graphrag_pipeline.settings.settings import LocalSearchSettings
from graphrag_pipeline.storage.arrays import distinct

N_PARTS = 5
RELATIONSHIPS_TO_CLAIMS = 2.0
"""Tokens of relationships for each token of claims, of what entities leave of the local part."""


def select_local_context(index: IndexReader, question: str, settings: LocalSearchSettings) -> Context:
    """Return matched entities and the records around them, packed into `max_context_tokens`.

    The conversation is taken off the budget first. Of the rest `community_share` is for reports and `text_unit_share`
    for text units. The remainder is for entities first, then relationships and claims. Parts that need less leave
    tokens to the others. Text units are packed last, by `settings.strategy` (`selection/local_text_units.py`). If no
    entity matches, the context is that of basic search.
    """
    alone = settings.model_copy(update={"return_candidate_context": False})
    return select_with_candidates(index, question, alone)[0]


def select_with_candidates(
    index: IndexReader, question: str, settings: LocalSearchSettings
) -> tuple[Context, Context | None]:
    """Return the context, and with `return_candidate_context` the other records that it was chosen from."""
    talk = read_history(settings)
    limit = settings.max_context_tokens - talk.n_tokens
    named = name_entities(index, talk.join(question), settings)
    matches = match_entities(index, talk.join(question), settings.top_k_entities, named)
    if not matches:
        return read_within(index, question, limit), Context() if settings.return_candidate_context else None
    if settings.strategy == DEPTH_FIRST:
        matches.sort(key=lambda match: -match.score)  # as in microsoft/graphrag: a name does not come before similarity
    return _select_around(index, question, matches, named, settings, limit)


def select_around(index: IndexReader, question: str, matches: list[Match], settings: LocalSearchSettings) -> Context:
    """Return the context around given entities, best first; `settings` has no conversation."""
    named = name_entities(index, question, settings)
    return _select_around(index, question, matches, named, settings, settings.max_context_tokens)[0]


def _select_around(
    index: IndexReader,
    question: str,
    matches: list[Match],
    named: NamedEntities,
    settings: LocalSearchSettings,
    limit: int,
) -> tuple[Context, Context | None]:
    around = _surround(index, question, matches, named, settings)
    kept, picks = _pack(around, settings, limit)
    chosen = _read(index, around, kept, picks)
    if not settings.return_candidate_context:
        return chosen, None
    others = {name: np.setdiff1d(np.arange(len(rows)), kept[name]) for name, rows in around.rows.items()}
    units = np.arange(len(around.pool.rows))
    left = np.setdiff1d(units, [pick.text_unit for pick in picks]).tolist()
    return chosen, _read(index, around, others, [pick_of(around.pool, unit) for unit in left])


@dataclass(frozen=True)
class _Around:
    """Candidates of the context: rows of each table, best first, with one value per row of each array.

    Attributes:
        rows: `entities`, `relationships`, `claims` and `reports`.
        costs: tokens of each of these rows.
        n_touched, is_inside: of relationships (`rank_relationships`).
        claimant: of claims, the position of the entity that each is about.
        n_inside: of reports, the number of matched entities inside.
    """

    matches: list[Match]
    rows: dict[str, np.ndarray]
    costs: dict[str, list[int]]
    n_touched: np.ndarray
    is_inside: np.ndarray
    claimant: np.ndarray
    n_inside: np.ndarray
    pool: TextUnitPool
    summaries: bool


def _surround(
    index: IndexReader, question: str, matches: list[Match], named: NamedEntities, settings: LocalSearchSettings
) -> _Around:
    entity_rows = np.array([match.row for match in matches])
    reports, n_inside = rank_reports(index, entity_rows, settings.community_level, settings.min_community_rank)
    relationships, n_touched, is_inside = rank_relationships(
        index, entity_rows, settings.top_k_relationships * len(matches), settings.relationship_ranking_attribute
    )
    claims, claimant = rank_claims(index, entity_rows)
    rows = {"entities": entity_rows, "relationships": relationships, "claims": claims, "reports": reports}
    costs = {name: row_costs(index.column(_TABLE_OF[name], "n_tokens")[rows[name]]) for name in rows}
    if settings.use_community_summary:
        costs["reports"] = row_costs([r.n_tokens for r in records.read_summaries(index, reports, n_inside)])
    pool = gather_text_units(index, question, matches, settings, named.question)
    return _Around(matches, rows, costs, n_touched, is_inside, claimant, n_inside, pool, settings.use_community_summary)


def _pack(around: _Around, settings: LocalSearchSettings, limit: int) -> tuple[dict[str, np.ndarray], list[Pick]]:
    """Return the positions in `_Around.rows` that fit the budget, and the picked text units."""
    picks: list[Pick] = []

    def choose(budget: int) -> list[int]:
        limits = Limits(
            budget=budget, guaranteed=settings.guaranteed_text_units, cap=settings.max_text_units_per_entity
        )
        picks[:] = pick_text_units(settings.strategy, around.pool, limits, settings.share_of_basic)
        return [pick.text_unit for pick in picks]

    shares = _divide_shares(settings, limit, sum(around.costs["entities"]))
    parts = [Part(name, shares[name], costs) for name, costs in around.costs.items()]
    parts.append(Part("text_units", settings.text_unit_share, around.pool.candidates.costs.tolist(), choose))
    packed = pack_parts(parts, limit)
    return {name: np.array(packed[name], dtype=np.int64) for name in around.rows}, picks


def _read(index: IndexReader, around: _Around, kept: dict[str, np.ndarray], picks: list[Pick]) -> Context:
    """Return the records at positions in `_Around.rows`, and those of picked text units."""
    at = {name: around.rows[name][places] for name, places in kept.items()}
    matches = [around.matches[place] for place in kept["entities"]]
    scores = np.array([match.score for match in around.matches])
    titles = [record["title"] for record in index.snapshot.take("entities", around.rows["entities"], ["title"])]
    read_reports = records.read_summaries if around.summaries else records.read_reports
    return Context(
        entities=records.read_entities(
            index, at["entities"], scores[kept["entities"]], [_how(match) for match in matches]
        ),
        relationships=records.read_relationships(
            index, at["relationships"], around.n_touched[kept["relationships"]],
            around.is_inside[kept["relationships"]],
        ),
        reports=read_reports(index, at["reports"], around.n_inside[kept["reports"]]),
        claims=records.read_claims(index, at["claims"], scores[around.claimant[kept["claims"]]]),
        text_units=records.read_text_units(
            index, around.pool.rows[[pick.text_unit for pick in picks]], score_picks(around.pool, picks),
            informed_entities(around.pool.candidates, titles, picks),
        ),
    )  # fmt: skip


_TABLE_OF = {
    "entities": "entities",
    "relationships": "relationships",
    "claims": "covariates",
    "reports": "community_reports",
}


def _how(match: Match) -> str:
    return "name" if match.is_named else "vector"


def _divide_shares(settings: LocalSearchSettings, limit: int, entity_tokens: int) -> dict[str, float]:
    """Return the shares of all parts but text units; entities get what they cost, at most the whole local part."""
    local = max(1 - settings.community_share - settings.text_unit_share, 0.0)
    budget = max(limit - PART_OVERHEAD * N_PARTS, 1)
    entities = min(local, (entity_tokens + 1) / budget)
    claims = (local - entities) / (1 + RELATIONSHIPS_TO_CLAIMS)
    return {
        "entities": entities,
        "relationships": claims * RELATIONSHIPS_TO_CLAIMS,
        "claims": claims,
        "reports": settings.community_share,
    }


# -------------------------------------------------------------------------------------------------------- 2 communities


def rank_reports(
    index: IndexReader, entity_rows: np.ndarray, level: int, min_rank: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Rank reports of the entities' communities, by (number of matched entities inside, rank), both descending.

    In each branch the deepest community at or above `level` is read, so that no report repeats its parent's content.
    Reports ranked below `min_rank` are left out.

    Returns:
        Rows of reports, and the number of matched entities in each.
    """
    of_entities = index.snapshot.adjacency.of_all("entity_communities", entity_rows)[1]
    communities, n_inside = np.unique(of_entities, return_counts=True)
    is_read = records.frontier_mask(index, level)[communities]
    communities, n_inside = communities[is_read], n_inside[is_read]
    numbers = index.column("communities", "community")[communities]
    rows = index.rows_of_numbers("community_reports", "community", numbers)
    rows, n_inside = rows[rows >= 0], n_inside[rows >= 0]
    is_read = ~(index.column("community_reports", "rank")[rows] < min_rank)
    rows, n_inside = rows[is_read], n_inside[is_read]
    order = np.lexsort((rows, -index.column("community_reports", "rank")[rows], -n_inside))
    return rows[order], n_inside[order]


# ------------------------------------------------------------------------------------------------------ 3 relationships


def rank_relationships(
    index: IndexReader, entity_rows: np.ndarray, max_outside: int, attribute: str = "rank"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rank relationships of the matched entities: first those between two of them, then those that lead outside.

    The former come by rank, the latter by (number of matched entities that the outside entity touches, rank), at most
    `max_outside`. Rank is `combined_degree`, or the weight if `attribute` says so. Ties go to the heavier relationship,
    then to the lower row.

    Returns:
        Rows; the number of matched entities touched (2 inside; outside, by the outside entity); whether it is inside.
    """
    adjacency = index.snapshot.adjacency
    rows = distinct(adjacency.of_all("entity_relationships", entity_rows)[1]).astype(np.int64)
    source, target = adjacency.array("relationship_source")[rows], adjacency.array("relationship_target")[rows]
    is_matched = np.zeros(index.snapshot.n_rows("entities"), dtype=bool)
    is_matched[entity_rows] = True
    is_source, is_inside = is_matched[source], is_matched[source] & is_matched[target]
    outside_entity = np.where(is_source, target, source)
    touches = np.bincount(outside_entity[~is_inside], minlength=len(is_matched))
    n_touched = np.where(is_inside, 2, touches[outside_entity])
    rank = _rank_by(index, rows, attribute)
    best = _preselect(is_inside, n_touched, rank, max_outside)
    weight = index.column("relationships", "weight")[rows[best]]
    keys = (rows[best], -weight, -rank[best], np.where(is_inside[best], 0, -n_touched[best]), ~is_inside[best])
    order = best[np.lexsort(keys)][: int(is_inside.sum()) + max_outside]
    return rows[order], n_touched[order], is_inside[order]


def _rank_by(index: IndexReader, rows: np.ndarray, attribute: str) -> np.ndarray:
    """Return integers that order relationships by an attribute."""
    if attribute == "weight":
        return np.unique(index.column("relationships", "weight")[rows], return_inverse=True)[1]
    return index.column("relationships", "combined_degree")[rows]


def _preselect(is_inside: np.ndarray, n_touched: np.ndarray, rank: np.ndarray, n: int) -> np.ndarray:
    """Return positions inside, and of the best n outside by (touched, rank) with their ties: few to sort."""
    outside = np.flatnonzero(~is_inside)
    if len(outside) > n > 0:
        worth = (n_touched[outside] << 32) + rank[outside]
        outside = outside[worth >= np.partition(worth, len(worth) - n)[len(worth) - n]]
    return np.r_[np.flatnonzero(is_inside), outside]


# ------------------------------------------------------------------------------------------------------------- 4 claims


def rank_claims(index: IndexReader, entity_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rank claims about the matched entities: one per entity in turn, so that each entity has one, in record order.

    Returns:
        Rows of claims, and the position of the entity in `entity_rows` that each is about.
    """
    owners, rows = index.snapshot.adjacency.of_all("entity_covariates", entity_rows)
    first = np.searchsorted(owners, np.arange(len(entity_rows)))
    turn = np.arange(len(rows)) - first[owners]
    order = np.lexsort((owners, turn))
    return rows[order].astype(np.int64), owners[order]
