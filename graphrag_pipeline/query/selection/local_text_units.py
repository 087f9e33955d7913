"""Step 5 of local search: candidate text units, and the choice of a strategy among them.

Candidates are the text units of the matched entities and the best ones of basic search. The strategies in
`strategies.RANKED` also get the text units that personalised PageRank reaches.

The `N_BASIC` best of basic search get a reserved place first, so local search does not fall below basic search. A
reserved place counts as the entity's next text unit: it uses up the entity's cap, quota, guarantee and rounds. If the
question names no known entity, the order by PageRank is that of basic search. `depth_first` reserves no place, as in
Microsoft GraphRAG: the entities get the whole budget first, and basic search fills what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from graphrag_pipeline.query.context import ROW_OVERHEAD, pack_rows
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.names import NamedQuestion
from graphrag_pipeline.query.selection.candidates import Candidates, Limits, Pick
from graphrag_pipeline.query.selection.hybrid_ranking import rank_text_units
from graphrag_pipeline.query.selection.pagerank import rank_by_pagerank
from graphrag_pipeline.query.selection.strategies import RANKED, select_text_units
from graphrag_pipeline.query.understanding.entity_matching import Match
from graphrag_pipeline.storage.arrays import distinct

DEPTH_FIRST = "depth_first"
N_BASIC = 5
"""Number of text units of basic search with a reserved place; they take at most two thirds of the budget."""
N_SEEDS = 30
"""Number of text units of basic search that PageRank starts at; the scores after them are almost equal."""
MAX_OFFERED = 1_024
"""Most text units that one entity offers, by number of relationships; a budget of 12,000 tokens holds fewer."""


@dataclass(frozen=True)
class TextUnitPool:
    """The candidates of a question with their rows in the text unit table.

    Attributes:
        rows: of text units, ascending; position i of the candidates is `rows[i]`.
        of_basic: positions of the best text units of basic search, best first.
    """

    rows: np.ndarray
    candidates: Candidates
    of_basic: np.ndarray


def gather_text_units(
    index: IndexReader, question: str, matches: Sequence[Match], strategy: str, named: NamedQuestion
) -> TextUnitPool:
    """Return the candidates for a question, with their relevance by PageRank if the strategy is in `RANKED`.

    Args:
        named: the entities that the question names; PageRank starts there.
    """
    is_ranked = strategy in RANKED
    ranked = rank_text_units(index, question, N_SEEDS if is_ranked else N_BASIC)
    found = index.snapshot.rows_of("text_units", [unit_id for unit_id, _ in ranked])
    if not is_ranked:
        rows, candidates = gather_candidates(index, matches, found)
        return TextUnitPool(rows, candidates, np.searchsorted(rows, found))
    scored = list(zip(found.tolist(), [score for _, score in ranked], strict=True))
    reached, scores = rank_by_pagerank(index, named, scored)
    may_be_read = index.row_mask("text_units")[reached]  # full PageRank also scores filtered rows, with 0
    reached, scores = reached[may_be_read], scores[may_be_read]
    rows, candidates = gather_candidates(index, matches, reached)
    relevance = np.zeros(len(rows))
    relevance[np.searchsorted(rows, reached)] = scores
    candidates = replace(candidates, relevance=relevance, read_vectors=lambda chosen: mean_vectors(index, rows[chosen]))
    return TextUnitPool(rows, candidates, np.searchsorted(rows, found[:N_BASIC]))


def gather_candidates(
    index: IndexReader, matches: Sequence[Match], others: Sequence[int] | np.ndarray = ()
) -> tuple[np.ndarray, Candidates]:
    """Return the text units of the matched entities as input of the selection strategies.

    Args:
        others: rows of further candidates, which need not mention a matched entity.

    Returns:
        Rows of text units, ascending, and the candidates; position i of the candidates is `rows[i]`.
    """
    adjacency = index.snapshot.adjacency
    entity_rows = np.array([match.row for match in matches])
    relationships = distinct(adjacency.of_all("entity_relationships", entity_rows)[1])
    related = adjacency.of_all("relationship_text_units", relationships)[1]
    n_related = np.bincount(related, minlength=index.snapshot.n_rows("text_units"))
    offers = [_offered(adjacency.of("entity_text_units", match.row), n_related) for match in matches]
    rows = distinct(np.r_[*offers, np.asarray(others, dtype=np.int64)])
    candidates = Candidates(
        text_units=tuple(np.searchsorted(rows, offer) for offer in offers),
        similarity=np.array([match.score for match in matches]),
        n_relationships=n_related[rows],
        costs=index.column("text_units", "n_tokens")[rows] + ROW_OVERHEAD,
    )
    return rows, candidates


def _offered(units: np.ndarray, n_related: np.ndarray) -> np.ndarray:
    """Return the `MAX_OFFERED` text units with most relationships, ties to the lower row; rows ascending, int64."""
    if len(units) > MAX_OFFERED:
        worth = (n_related[units].astype(np.int64) << 32) - units
        units = np.sort(units[np.argpartition(-worth, MAX_OFFERED)[:MAX_OFFERED]])
    return units.astype(np.int64)


def mean_vectors(index: IndexReader, rows: np.ndarray) -> np.ndarray:
    """Return the mean vector of each text unit's sentences, weighted by their lengths in characters.

    Returns:
        Unit vectors, float32 (len(rows), dimensions); zeros for a text unit without known words.
    """
    sentences = index.snapshot.sentences
    sums = np.zeros((len(rows), sentences.vectors.shape[1]), dtype=np.float32)
    bounds = zip(sentences.indptr[rows].tolist(), sentences.indptr[rows + 1].tolist(), strict=True)
    for place, (start, end) in enumerate(bounds):  # a product per text unit is faster than one `reduceat` over all
        sums[place] = sentences.scales[start:end] @ sentences.vectors[start:end].astype(np.float32)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return sums / np.where(lengths > 0, lengths, 1)


def pick_text_units(strategy: str, pool: TextUnitPool, limits: Limits) -> list[Pick]:
    """Return the text units of basic search that fit two thirds of the budget, and those that the strategy takes.

    Returns:
        Picks in the order of the context. Those of basic search come first; strategies in `RANKED` sort all by
        relevance; `depth_first` puts basic search last and takes what still fits. A text unit of basic search is a
        pick for the first entity that it informs, -1 if it informs none.
    """
    candidates, of_basic = pool.candidates, pool.of_basic
    costs = candidates.costs[of_basic].tolist()
    if strategy == DEPTH_FIRST:
        picks = select_text_units(strategy, candidates, limits)
        taken = [pick.text_unit for pick in picks]
        left = limits.budget - int(candidates.costs[taken].sum())
        extra = pack_rows(costs, left, skip=np.flatnonzero(np.isin(of_basic, taken)).tolist())
        return picks + [pick_of(pool, unit) for unit in of_basic[extra].tolist()]
    reserved = of_basic[pack_rows(costs, limits.budget * 2 // 3) or pack_rows(costs, limits.budget)[:1]]
    floor = [pick_of(pool, unit) for unit in reserved.tolist()]
    left = limits.budget - int(candidates.costs[reserved].sum())
    unaffordable = candidates.costs.copy()
    unaffordable[reserved] = limits.budget + 1  # more than the budget: the strategy cannot take them again
    others = tuple(units[~np.isin(units, reserved)] for units in candidates.text_units)
    rest = replace(candidates, text_units=others, costs=unaffordable)
    n_reserved = np.bincount([pick.entity for pick in floor if pick.entity >= 0], minlength=len(others))
    picks = floor + select_text_units(strategy, rest, replace(limits, budget=left, reserved=tuple(n_reserved.tolist())))
    if strategy in RANKED and candidates.relevance is not None:
        relevance = candidates.relevance
        picks.sort(key=lambda pick: -relevance[pick.text_unit])
    return picks


def pick_of(pool: TextUnitPool, unit: int) -> Pick:
    """Return the pick of a text unit for the first entity that it informs, -1 if it informs none."""
    return Pick(unit, _owner(pool.candidates, unit))


def _owner(candidates: Candidates, unit: int) -> int:
    return next((i for i, units in enumerate(candidates.text_units) if are_members(units, np.array([unit]))[0]), -1)


def are_members(units: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return whether an ascending array holds each of some values, bool (len(wanted),)."""
    if not len(units):
        return np.zeros(len(wanted), dtype=bool)
    return units[np.minimum(np.searchsorted(units, wanted), len(units) - 1)] == wanted


def score_picks(pool: TextUnitPool, picks: Sequence[Pick]) -> np.ndarray:
    """Return the relevance of each pick by PageRank if known, else the similarity of the entity it was taken for."""
    candidates = pool.candidates
    if candidates.relevance is not None:
        return candidates.relevance[[pick.text_unit for pick in picks]]
    return np.append(candidates.similarity, 0.0)[[pick.entity for pick in picks]]


def informed_entities(candidates: Candidates, titles: Sequence[str], picks: Sequence[Pick]) -> list[tuple[str, ...]]:
    """Return the titles of the matched entities that each picked text unit informs, best entity first."""
    picked = np.array([pick.text_unit for pick in picks], dtype=np.int64)
    informs = [are_members(units, picked).tolist() for units in candidates.text_units]
    return [
        tuple(title for title, places in zip(titles, informs, strict=True) if places[place])
        for place in range(len(picks))
    ]
