"""Local search: the entities a question is about, and what surrounds them (methods.md section 7).

Steps: `match_entities`, then communities, relationships, claims and text units around them by the snapshot's adjacency
arrays (row numbers; no table is scanned per query), packed into one token budget by `select_local_context`. Never below
basic search: its best text units have a part of the budget, whatever the entities. The answer is written by
`answers.write_answer`. "Row" means the position of a record in its contract table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphrag_pipeline.identity import entity_text
from graphrag_pipeline.models.static_embeddings import load_static_embeddings
from graphrag_pipeline.query import records
from graphrag_pipeline.query.basic_search import select_basic_context
from graphrag_pipeline.query.candidates import Limits, Pick
from graphrag_pipeline.query.context import PART_OVERHEAD, Part, pack_parts, row_costs
from graphrag_pipeline.query.local_text_units import (
    Match,
    gather_text_units,
    informed_entities,
    pick_text_units,
    score_picks,
)
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.settings import LocalSearchSettings
from graphrag_pipeline.storage.arrays import distinct

if TYPE_CHECKING:
    from graphrag_pipeline.query.graph_index import GraphIndex

ENTITY_VECTORS = "default-entity-description"
N_PARTS = 5
RELATIONSHIPS_TO_CLAIMS = 2.0
"""How many tokens relationships get for each that claims get, of what the entities leave of the local part."""


def select_local_context(index: GraphIndex, question: str, settings: LocalSearchSettings) -> Context:
    """Steps 1 to 5: matched entities and the records around them, packed into `max_context_tokens`.

    The budget: `community_share` for reports, `text_unit_share` for text units, the rest for entities first, then
    relationships and claims; what one part leaves unused goes to the others. Text units are packed last, by
    `settings.strategy` (`local_text_units.py`). The context of basic search where no entity matches.
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
    gathered = gather_text_units(index, question, matches, settings.strategy)
    picks: list[Pick] = []

    def choose(budget: int) -> list[int]:
        limits = Limits(
            budget=budget, guaranteed=settings.guaranteed_text_units, cap=settings.max_text_units_per_entity
        )
        picks[:] = pick_text_units(settings.strategy, gathered, limits)
        return [pick.text_unit for pick in picks]

    rows_of = {"entities": entity_rows, "relationships": relationships, "claims": claims, "reports": reports}
    costs = {name: row_costs(index.column(_TABLE_OF[name], "n_tokens")[rows]) for name, rows in rows_of.items()}
    shares = _divide_shares(settings, sum(costs["entities"]))
    parts = [Part(name, shares[name], costs[name]) for name in rows_of]
    parts.append(Part("text_units", settings.text_unit_share, gathered.candidates.costs.tolist(), choose))
    packed = pack_parts(parts, settings.max_context_tokens)
    kept = {name: np.array(packed[name], dtype=np.int64) for name in packed}
    scores = np.array([match.score for match in matches])
    titles = [record["title"] for record in index.snapshot.take("entities", entity_rows, ["title"])]
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
            index, gathered.rows[[pick.text_unit for pick in picks]], score_picks(gathered, picks),
            informed_entities(gathered.candidates, titles, picks),
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
    """The k entities nearest to a question: those whose name it says, then by vector similarity.

    Names come first because static vectors of long descriptions drift: on the Christmas Carol index JACOB MARLEY is
    at 0.37 from "Who is Jacob Marley?", behind eight others. Exactly k where the index has k and the question has a
    vector; one without (punctuation, an unknown script) matches by name alone.
    """
    vector = index.embed([question])[0]
    surest = [row for rows in index.names.take_apart(question).names for row in rows]
    named = list(dict.fromkeys([*surest, *index.names.find(question)]))[:k]
    titles = index.snapshot.vectors(ENTITY_VECTORS)
    named_scores = _read_entity_vectors(index, named) @ vector
    matches = [Match(row, float(score), True) for row, score in zip(named, named_scores, strict=True)]
    if len(matches) < k:
        near = titles.search(vector, k + len(matches))
        rows = index.snapshot.rows_of("entities", [record_id for record_id, _ in near])
        taken = set(named)
        found = [(int(row), score) for row, (_, score) in zip(rows, near, strict=True) if int(row) not in taken]
        matches += [Match(row, score, False) for row, score in found[: k - len(matches)]]
    return matches


def _read_entity_vectors(index: GraphIndex, rows: list[int]) -> np.ndarray:
    """Vectors of entities; with the bundled embedder it costs less to make them again than to look them up."""
    found = index.snapshot.take("entities", rows, ["id", "title", "description"])
    if index.embedder.fingerprint == load_static_embeddings().fingerprint:
        return index.embed([entity_text(record["title"], record["description"]) for record in found])
    return index.snapshot.vectors(ENTITY_VECTORS).vectors([record["id"] for record in found])


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
    rows = distinct(adjacency.of_all("entity_relationships", entity_rows)[1]).astype(np.int64)
    source, target = adjacency.array("relationship_source")[rows], adjacency.array("relationship_target")[rows]
    is_matched = np.zeros(index.snapshot.n_rows("entities"), dtype=bool)
    is_matched[entity_rows] = True
    is_source, is_inside = is_matched[source], is_matched[source] & is_matched[target]
    outside_entity = np.where(is_source, target, source)
    touches = np.bincount(outside_entity[~is_inside], minlength=len(is_matched))
    n_touched = np.where(is_inside, 2, touches[outside_entity])
    rank = index.column("relationships", "combined_degree")[rows]
    best = _preselect(is_inside, n_touched, rank, max_outside)
    weight = index.column("relationships", "weight")[rows[best]]
    keys = (rows[best], -weight, -rank[best], np.where(is_inside[best], 0, -n_touched[best]), ~is_inside[best])
    order = best[np.lexsort(keys)][: int(is_inside.sum()) + max_outside]
    return rows[order], n_touched[order], is_inside[order]


def _preselect(is_inside: np.ndarray, n_touched: np.ndarray, rank: np.ndarray, n: int) -> np.ndarray:
    """Positions inside, and of the best n outside by (touched, rank) with all their ties, so that few are sorted."""
    outside = np.flatnonzero(~is_inside)
    if len(outside) > n > 0:
        worth = (n_touched[outside] << 32) + rank[outside]
        outside = outside[worth >= np.partition(worth, len(worth) - n)[len(worth) - n]]
    return np.r_[np.flatnonzero(is_inside), outside]


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
