"""Local search: the entities a question is about, and what surrounds them (methods.md section 7).

Steps: `match_entities`, then communities, relationships, claims and text units around them by the snapshot's adjacency
arrays (row numbers; no table is scanned per query), packed into one token budget by `select_local_context`. Never below
basic search: its best text units have a part of the budget, whatever the entities. The answer is written by
`answers.write_answer`. "Row" means the position of a record in its contract table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from graphrag_pipeline.query import records
from graphrag_pipeline.query.basic_search import rank_text_units, select_basic_context
from graphrag_pipeline.query.context import PART_OVERHEAD, Part, pack_parts, pack_rows, row_costs
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.selection import Candidates, Limits, Pick, select_text_units
from graphrag_pipeline.settings import LocalSearchSettings

if TYPE_CHECKING:
    from graphrag_pipeline.query.graph_index import GraphIndex

ENTITY_VECTORS = "default-entity-description"
N_PARTS = 5
N_BASIC = 3
"""Best text units of basic search in the context, as far as two thirds of the text units' budget allow."""
RELATIONSHIPS_TO_CLAIMS = 2.0
"""How many tokens relationships get for each that claims get, of what the entities leave of the local part."""


@dataclass(frozen=True)
class Match:
    """A matched entity: its row, cosine similarity to the question, and whether the question says its name."""

    row: int
    score: float
    is_named: bool


def select_local_context(index: GraphIndex, question: str, settings: LocalSearchSettings) -> Context:
    """Steps 1 to 5: matched entities and the records around them, packed into `max_context_tokens`.

    The budget: `community_share` for reports, `text_unit_share` for text units, the rest for entities first, then
    relationships and claims; what one part leaves unused goes to the others. Text units are packed last: the
    `N_BASIC` best of basic search, then by `settings.strategy`. The context of basic search where no entity matches.
    """
    matches = match_entities(index, question, settings.top_k_entities)
    if not matches:
        limit = {"max_context_tokens": settings.max_context_tokens}
        return select_basic_context(index, question, index.settings.basic_search.model_copy(update=limit))
    entity_rows = np.array([match.row for match in matches])
    reports, n_inside = rank_reports(index, entity_rows, settings.community_level)
    relationships, n_touched, is_inside = rank_relationships(
        index, entity_rows, settings.top_k_relationships * len(matches)
    )
    claims, claimant = rank_claims(index, entity_rows)
    of_basic = index.snapshot.rows_of("text_units", [unit for unit, _ in rank_text_units(index, question, N_BASIC)])
    text_units, candidates = gather_candidates(index, matches, of_basic)
    picks: list[Pick] = []

    def choose(budget: int) -> list[int]:
        limits = Limits(
            budget=budget, guaranteed=settings.guaranteed_text_units, cap=settings.max_text_units_per_entity
        )
        picks[:] = _pick_text_units(settings.strategy, candidates, limits, np.searchsorted(text_units, of_basic))
        return [pick.text_unit for pick in picks]

    rows_of = {"entities": entity_rows, "relationships": relationships, "claims": claims, "reports": reports}
    costs = {name: row_costs(index.column(_TABLE_OF[name], "n_tokens")[rows]) for name, rows in rows_of.items()}
    shares = _divide_shares(settings, sum(costs["entities"]))
    parts = [Part(name, shares[name], costs[name]) for name in rows_of]
    parts.append(Part("text_units", settings.text_unit_share, candidates.costs.tolist(), choose))
    packed = pack_parts(parts, settings.max_context_tokens)
    kept = {name: np.array(packed[name], dtype=np.int64) for name in packed}
    scores = np.array([match.score for match in matches])
    return Context(
        entities=records.read_entities(
            index, entity_rows[kept["entities"]], scores[kept["entities"]], [_how(matches[i]) for i in kept["entities"]]
        ),
        relationships=records.read_relationships(
            index, relationships[kept["relationships"]], n_touched[kept["relationships"]],
            is_inside[kept["relationships"]],
        ),
        reports=records.read_reports(index, reports[kept["reports"]], n_inside[kept["reports"]]),
        claims=records.read_claims(index, claims[kept["claims"]], scores[claimant[kept["claims"]]]),
        text_units=records.read_text_units(
            index, text_units[[pick.text_unit for pick in picks]],
            np.append(scores, 0.0)[[pick.entity for pick in picks]],
            _informed(index, candidates, entity_rows, picks),
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


def _divide_shares(settings: LocalSearchSettings, entity_tokens: int) -> dict[str, float]:
    """Shares of the parts but the text units; the entities' is what they cost, at most the whole local part."""
    local = 1 - settings.community_share - settings.text_unit_share
    budget = max(settings.max_context_tokens - PART_OVERHEAD * N_PARTS, 1)
    entities = min(local, (entity_tokens + 1) / budget)
    claims = (local - entities) / (1 + RELATIONSHIPS_TO_CLAIMS)
    return {
        "entities": entities,
        "relationships": claims * RELATIONSHIPS_TO_CLAIMS,
        "claims": claims,
        "reports": settings.community_share,
    }


# ----------------------------------------------------------------------------------------------------------- 1 entities


def match_entities(index: GraphIndex, question: str, k: int) -> list[Match]:
    """The k entities nearest to a question: those whose name it says, longest name first, then by vector similarity.

    Names come first because static vectors of long descriptions drift: on the Christmas Carol index JACOB MARLEY is
    at 0.37 from "Who is Jacob Marley?", behind eight others. Exactly k where the index has k and the question has a
    vector; one without (punctuation, an unknown script) matches by name alone.
    """
    vector = index.embed([question])[0]
    named = index.names.find(question)[:k]
    titles = index.snapshot.vectors(ENTITY_VECTORS)
    ids = [record["id"] for record in index.snapshot.take("entities", named, ["id"])]
    named_scores = titles.vectors(ids) @ vector
    matches = [Match(row, float(score), True) for row, score in zip(named, named_scores, strict=True)]
    if len(matches) < k:
        near = titles.search(vector, k + len(matches))
        rows = index.snapshot.rows_of("entities", [record_id for record_id, _ in near])
        taken = set(named)
        found = [(int(row), score) for row, (_, score) in zip(rows, near, strict=True) if int(row) not in taken]
        matches += [Match(row, score, False) for row, score in found[: k - len(matches)]]
    return matches


# -------------------------------------------------------------------------------------------------------- 2 communities


def rank_reports(index: GraphIndex, entity_rows: np.ndarray, level: int) -> tuple[np.ndarray, np.ndarray]:
    """Reports of the entities' communities, by (number of matched entities inside, rank), both descending.

    Of each branch the deepest community at or above `level` is read, so that no report repeats its parent's content.

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
    order = np.lexsort((rows, -index.column("community_reports", "rank")[rows], -n_inside))
    return rows[order], n_inside[order]


# ------------------------------------------------------------------------------------------------------ 3 relationships


def rank_relationships(
    index: GraphIndex, entity_rows: np.ndarray, max_outside: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Relationships of the matched entities: those between two of them first, by rank; then those that lead outside.

    The latter come by (number of matched entities that the outside entity touches, rank), at most `max_outside`. Rank
    is `combined_degree`; ties go to the heavier relationship, then to the lower row.

    Returns:
        Rows, number of matched entities touched (2 inside; outside, by the outside entity), whether it is inside.
    """
    adjacency = index.snapshot.adjacency
    rows = np.unique(adjacency.of_all("entity_relationships", entity_rows)[1]).astype(np.int64)
    source, target = adjacency.array("relationship_source")[rows], adjacency.array("relationship_target")[rows]
    is_source, is_target = np.isin(source, entity_rows), np.isin(target, entity_rows)
    is_inside = is_source & is_target
    outside_entity = np.where(is_source, target, source)
    n_touched = np.full(len(rows), 2, dtype=np.int64)
    _, group, group_size = np.unique(outside_entity[~is_inside], return_inverse=True, return_counts=True)
    n_touched[~is_inside] = group_size[group]
    rank = index.column("relationships", "combined_degree")[rows]
    weight = index.column("relationships", "weight")[rows]
    order = np.lexsort((rows, -weight, -rank, np.where(is_inside, 0, -n_touched), ~is_inside))
    order = order[: int(is_inside.sum()) + max_outside]
    return rows[order], n_touched[order], is_inside[order]


# ------------------------------------------------------------------------------------------------------------- 4 claims


def rank_claims(index: GraphIndex, entity_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Claims about the matched entities, one per entity in turn so that each is heard, in record order.

    Returns:
        Rows of claims, and the position of the entity in `entity_rows` that each is about.
    """
    owners, rows = index.snapshot.adjacency.of_all("entity_covariates", entity_rows)
    first = np.searchsorted(owners, np.arange(len(entity_rows)))
    turn = np.arange(len(rows)) - first[owners]
    order = np.lexsort((owners, turn))
    return rows[order].astype(np.int64), owners[order]


# --------------------------------------------------------------------------------------------------------- 5 text units


def gather_candidates(
    index: GraphIndex, matches: list[Match], others: Sequence[int] | np.ndarray = ()
) -> tuple[np.ndarray, Candidates]:
    """The matched entities' text units, as the selection strategies take them.

    Args:
        others: rows of text units that are to have a position too, whether an entity is in them or not.

    Returns:
        Rows of text units, ascending, and the candidates that speak of them by position.
    """
    adjacency = index.snapshot.adjacency
    entity_rows = np.array([match.row for match in matches])
    owners, units = adjacency.of_all("entity_text_units", entity_rows)
    rows = np.unique(np.r_[units.astype(np.int64), np.asarray(others, dtype=np.int64)])
    positions = np.searchsorted(rows, units)
    bounds = np.searchsorted(owners, np.arange(len(matches) + 1))
    relationships = np.unique(adjacency.of_all("entity_relationships", entity_rows)[1])
    related = adjacency.of_all("relationship_text_units", relationships)[1]
    is_candidate = np.zeros(index.snapshot.n_rows("text_units"), dtype=bool)
    is_candidate[rows] = True
    n_relationships = np.bincount(np.searchsorted(rows, related[is_candidate[related]]), minlength=len(rows))
    candidates = Candidates(
        text_units=tuple(positions[bounds[i] : bounds[i + 1]] for i in range(len(matches))),
        similarity=np.array([match.score for match in matches]),
        n_relationships=n_relationships,
        costs=np.array(row_costs(index.column("text_units", "n_tokens")[rows]), dtype=np.int64),
    )
    return rows.astype(np.int64), candidates


def _pick_text_units(strategy: str, candidates: Candidates, limits: Limits, of_basic: np.ndarray) -> list[Pick]:
    """Those of basic search that fit two thirds of the budget, then what the strategy takes of the others.

    Args:
        of_basic: positions, best first.

    Returns:
        Picks; the entity of one of basic search is the first that it informs, -1 where it informs none.
    """
    costs = candidates.costs[of_basic].tolist()
    taken = of_basic[pack_rows(costs, limits.budget * 2 // 3) or pack_rows(costs, limits.budget)[:1]]
    owners = [next((i for i, units in enumerate(candidates.text_units) if unit in units), -1) for unit in taken]
    others = tuple(units[~np.isin(units, taken)] for units in candidates.text_units)
    left = limits.budget - int(candidates.costs[taken].sum())
    by_strategy = select_text_units(strategy, replace(candidates, text_units=others), replace(limits, budget=left))
    return [Pick(int(unit), owner) for unit, owner in zip(taken, owners, strict=True)] + by_strategy


def _informed(
    index: GraphIndex, candidates: Candidates, entity_rows: np.ndarray, picks: list[Pick]
) -> list[tuple[str, ...]]:
    """Titles of the matched entities that each picked text unit informs."""
    titles = [record["title"] for record in index.snapshot.take("entities", entity_rows, ["title"])]
    members = [frozenset(units.tolist()) for units in candidates.text_units]
    return [tuple(t for t, units in zip(titles, members, strict=True) if pick.text_unit in units) for pick in picks]
