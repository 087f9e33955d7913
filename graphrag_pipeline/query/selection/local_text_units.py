"""Step 5 of local search: candidate text units, and the choice of a strategy among them.

Candidates are the text units of the matched entities. The strategies in `strategies.RANKED` also get the text units
that personalised PageRank reaches, and of equal texts only the best, as in basic search.

The strategies in `RANKED` reserve places for the first `N_RESERVED` text units of their own ranking, which begins with
those of basic search (`graph_ranking.py`), so that local search does not fall below basic search. The other strategies
choose among the text units of the matched entities alone, as their sources say, unless basic search may take a share
of the budget first (`basic_share`). A reserved place counts as the entity's next text unit: it uses up the entity's
cap, quota, guarantee and rounds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from graphrag_pipeline.query.context import ROW_OVERHEAD, pack_rows
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.names import NamedQuestion
from graphrag_pipeline.query.records import read_text_units
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.selection.graph_ranking import rank_with_graph
from graphrag_pipeline.query.selection.hybrid_ranking import begin_ranking
from graphrag_pipeline.query.selection.reranking import Candidates, Limits, Pick
from graphrag_pipeline.query.selection.strategies import RANKED, select_text_units
from graphrag_pipeline.query.understanding.entity_matching import Match
from graphrag_pipeline.settings.settings import LocalSearchSettings
from graphrag_pipeline.storage.arrays import distinct, nth_largest

BALANCED = "balanced"
DEPTH_FIRST = "depth_first"
PER_ENTITY_CAP = "per_entity_cap"
N_BASIC = 5
"""Most text units of basic search with a reserved place, for strategies that are not in `RANKED`."""
N_RESERVED = 10
"""Most text units with a reserved place for the strategies in `RANKED`: basic search reads ten by default."""
N_SEEDS = 30
"""Number of text units of basic search that PageRank starts at; the scores after them are almost equal."""
_MAX_SPARSITY = 64
"""Text units for each relationship, up to which counting them in an array of all is faster than sorting."""
MAX_COMPARED = 256
"""Best text units among which near-copies are looked for: more than fit the context, and 2 ms."""
NEAR_COSINE = 0.95
"""Of the means of their sentences: below it, two texts share too few words to be near-copies."""
NEAR_RUNS = 0.7
"""Least Jaccard index of near-copies, as usual for shingles (Broder 1997); rows of a table differ by more."""
MIN_OFFERED = 1_024
"""Text units that one entity may offer in any case; more if more could fit the context."""


@dataclass(frozen=True)
class TextUnitPool:
    """The candidates of a question with their rows in the text unit table.

    Attributes:
        rows: of text units, ascending; position i of the candidates is `rows[i]`.
        first: positions of the text units that may have a reserved place, best first.
        order: all text units in the order of a reranking model; None: the strategy chooses.
    """

    rows: np.ndarray
    candidates: Candidates
    first: np.ndarray
    order: tuple[Pick, ...] | None = None


def begin_basic(
    index: IndexReader, question: str, settings: LocalSearchSettings
) -> Callable[[], list[tuple[str, float]]]:
    """Start basic search for as many text units as the strategy reads; see `begin_ranking`."""
    n_found = N_SEEDS if settings.strategy in RANKED else N_BASIC if settings.share_of_basic else 0
    return begin_ranking(index, question, n_found)


def gather_text_units(
    index: IndexReader,
    ranking: Callable[[], list[tuple[str, float]]],
    matches: Sequence[Match],
    settings: LocalSearchSettings,
    named: NamedQuestion,
) -> TextUnitPool:
    """Return the candidates for a question, with their relevance by PageRank if the strategy is in `RANKED`.

    Args:
        ranking: returns the ids and scores of the text units that basic search finds (`begin_basic`).
        named: the entities that the question names; PageRank starts there.
    """
    max_offered = max(MIN_OFFERED, settings.max_context_tokens // (ROW_OVERHEAD + 1))
    offers = gather_offers(index, matches, max_offered)
    ranked = ranking()  # as late as possible: its searches run until then
    found = index.snapshot.rows_of("text_units", [unit_id for unit_id, _ in ranked])
    if settings.strategy not in RANKED:
        rows, candidates = join_offers(index, matches, offers, found)
        return TextUnitPool(rows, candidates, np.searchsorted(rows, found))
    scored = list(zip(found.tolist(), [score for _, score in ranked], strict=True))
    reached, scores = rank_with_graph(index, named, scored)
    copies = find_copies(index, reached)
    if settings.strategy == BALANCED:
        copies = np.union1d(copies, find_near_copies(index, reached[~np.isin(reached, copies)], offers))
    if len(copies):
        is_first = ~np.isin(reached, copies)
        reached, scores = reached[is_first], scores[is_first]
        offers = [(units[kept], counts[kept]) for units, counts in offers for kept in (~np.isin(units, copies),)]
    rows, candidates = join_offers(index, matches, offers, reached)
    relevance = np.zeros(len(rows))
    relevance[np.searchsorted(rows, reached)] = scores
    means = index.snapshot.sentence_means
    candidates = replace(candidates, relevance=relevance, read_vectors=lambda chosen: means.read(rows[chosen]))
    return TextUnitPool(rows, candidates, np.searchsorted(rows, reached[:N_RESERVED]))


def find_copies(index: IndexReader, rows: np.ndarray) -> np.ndarray:
    """Return the rows whose text equals that of an earlier row, such as an article that two agencies sent.

    Texts are read only of rows with equal numbers of tokens and equal ends of the last sentence.

    Args:
        rows: of text units, each once, best first.
    """
    sentences, n_tokens = index.snapshot.sentences, index.column("text_units", "n_tokens")[rows].astype(np.int64)
    n_before = sentences.indptr[rows + 1]  # of the sentences of all text units up to this one
    has_sentences = n_before > sentences.indptr[rows]
    shapes = n_tokens << 32
    shapes[has_sentences] += sentences.ends[n_before[has_sentences] - 1]
    _, shape, n_alike = np.unique(shapes, return_inverse=True, return_counts=True)
    alike = rows[n_alike[shape] > 1]
    first: dict[str, int] = {}
    texts = [record["text"] for record in index.snapshot.take("text_units", alike, ["text"])]
    copies = [row for row, text in zip(alike.tolist(), texts, strict=True) if first.setdefault(text, row) != row]
    return np.array(copies, dtype=np.int64)


def find_near_copies(index: IndexReader, rows: np.ndarray, offers: Sequence[Offer]) -> np.ndarray:
    """Return the rows that nearly repeat an earlier row, such as a report that changes a date and a number.

    Vectors find the pairs, and the Jaccard index of their runs of three words decides. A row that informs a matched
    entity that the earlier row does not inform is not a copy.

    Args:
        rows: of text units, each once, best first; the first `MAX_COMPARED` are compared.
    """
    rows = rows[:MAX_COMPARED]
    vectors = index.snapshot.sentence_means.read(rows)
    near = np.triu(vectors @ vectors.T >= NEAR_COSINE, 1)
    places = np.flatnonzero(near.any(axis=0) | near.any(axis=1))
    texts = [record["text"] for record in index.snapshot.take("text_units", rows[places], ["text"])]
    runs = dict(zip(places.tolist(), map(_read_runs, texts), strict=True))
    informs = np.array([np.isin(rows, units) for units, _ in offers]).reshape(len(offers), len(rows))
    copies: list[int] = []
    for place in np.flatnonzero(near.any(axis=0)).tolist():
        for earlier in np.flatnonzero(near[:, place]).tolist():
            one, other = runs[earlier], runs[place]
            is_copy = len(one & other) >= NEAR_RUNS * max(len(one | other), 1)
            if earlier not in copies and is_copy and not (informs[:, place] & ~informs[:, earlier]).any():
                copies.append(place)
                break
    return rows[copies]


def _read_runs(text: str) -> set[tuple[str, ...]]:
    words = text.casefold().split()
    return set(zip(words, words[1:], words[2:], strict=False))


Offer: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Rows of the text units of an entity, in the order of its list, and the number of its relationships in each."""


def gather_offers(index: IndexReader, matches: Sequence[Match], max_offered: int = MIN_OFFERED) -> list[Offer]:
    """Return the text units that each matched entity offers, at most `max_offered` with most of its relationships."""
    adjacency = index.snapshot.adjacency
    entity_rows = np.array([match.row for match in matches])
    owners, relationships = adjacency.of_all("entity_relationships", entity_rows)
    bounds = np.searchsorted(owners, np.arange(len(matches) + 1))
    offers = []
    for match, start, end in zip(matches, bounds[:-1], bounds[1:], strict=True):
        units = adjacency.of("entity_text_units", match.row).astype(np.int64)
        offers.append(_most_stated(units, _count_stated(index, relationships[start:end], units), max_offered))
    return offers


def join_offers(
    index: IndexReader, matches: Sequence[Match], offers: Sequence[Offer], others: np.ndarray
) -> tuple[np.ndarray, Candidates]:
    """Return the text units of the matched entities as input of the selection strategies.

    Args:
        offers: of the matches (`gather_offers`).
        others: rows of further candidates, which need not mention a matched entity; int64.

    Returns:
        Rows of text units, ascending, and the candidates; position i of the candidates is `rows[i]`.
    """
    rows = distinct(np.concatenate((*(units for units, _ in offers), others)))
    candidates = Candidates(
        text_units=tuple(np.searchsorted(rows, units) for units, _ in offers),
        n_of_entity=tuple(counts for _, counts in offers),
        similarity=np.array([match.score for match in matches]),
        costs=index.column("text_units", "n_tokens")[rows] + ROW_OVERHEAD,
    )
    return rows, candidates


def _count_stated(index: IndexReader, relationships: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Return how many of some relationships each text unit states, int64 (len(units),)."""
    stated_in = index.snapshot.adjacency.of_all("relationship_text_units", relationships)[1]
    n_units = index.snapshot.n_rows("text_units")
    if _MAX_SPARSITY * len(stated_in) > n_units:
        return np.bincount(stated_in, minlength=n_units).take(units)
    stated_in = np.sort(stated_in, kind="stable")
    return np.searchsorted(stated_in, units, side="right") - np.searchsorted(stated_in, units, side="left")


def _most_stated(units: np.ndarray, counts: np.ndarray, n: int) -> Offer:
    """Return the n text units with most relationships of an entity, ties to the earlier one, and those numbers.

    Args:
        units: rows, in the order of the entity's list.
        counts: relationships of the entity in each.
    """
    if len(units) > n:
        worth = (counts << 32) - np.arange(len(units))
        kept = np.flatnonzero(worth >= nth_largest(worth, n))
        units, counts = units[kept], counts[kept]
    return units, counts


def pick_text_units(strategy: str, pool: TextUnitPool, limits: Limits, basic_tokens: int | None = None) -> list[Pick]:
    """Return the text units with a reserved place that fit their tokens, and those that the strategy takes.

    Args:
        basic_tokens: of the budget, for text units with a reserved place; None: there are none.

    Returns:
        Picks in the order of the context. The reserved ones come first, but strategies in `RANKED` sort all by
        relevance. A reserved text unit is a pick for the first entity that it informs, -1 if it informs none.
    """
    candidates = pool.candidates
    floor = [] if basic_tokens is None else _reserve(strategy, pool, limits, basic_tokens)
    reserved = [pick.text_unit for pick in floor]
    left = limits.budget - int(candidates.costs[reserved].sum())
    unaffordable = candidates.costs.copy()
    unaffordable[reserved] = limits.budget + 1  # more than the budget: the strategy cannot take them again
    may_be_taken = np.ones(len(unaffordable), dtype=bool)
    may_be_taken[reserved] = False
    is_other = [may_be_taken[units] for units in candidates.text_units]
    others, n_of_entity = (
        tuple(values[kept] for values, kept in zip(arrays, is_other, strict=True))
        for arrays in (candidates.text_units, candidates.n_of_entity)
    )
    rest = replace(candidates, text_units=others, n_of_entity=n_of_entity, costs=unaffordable)
    n_reserved = np.bincount([pick.entity for pick in floor if pick.entity >= 0], minlength=len(others))
    picks = floor + select_text_units(strategy, rest, replace(limits, budget=left, reserved=tuple(n_reserved.tolist())))
    if strategy in RANKED and candidates.relevance is not None:
        relevance = candidates.relevance
        picks.sort(key=lambda pick: -relevance[pick.text_unit])
    return picks


def _reserve(strategy: str, pool: TextUnitPool, limits: Limits, basic_tokens: int) -> list[Pick]:
    """Return the text units with a reserved place that fit their tokens; a cap holds here, too.

    With the strategies in `RANKED` it is at least the best one that fits the budget.
    """
    costs = pool.candidates.costs[pool.first].tolist()
    fit = pack_rows(costs, basic_tokens)
    if not fit and strategy in RANKED:
        fit = pack_rows(costs, limits.budget)[:1]
    picks = [pick_of(pool, unit) for unit in pool.first[fit].tolist()]
    if strategy != PER_ENTITY_CAP:
        return picks
    owners = [pick.entity for pick in picks]
    return [p for place, p in enumerate(picks) if p.entity < 0 or owners[:place].count(p.entity) < limits.cap]


def pick_of(pool: TextUnitPool, unit: int) -> Pick:
    """Return the pick of a text unit for the first entity that it informs, -1 if it informs none."""
    return Pick(unit, int(pool.candidates.owners[unit]))


def read_picks(
    index: IndexReader, pool: TextUnitPool, picks: Sequence[Pick], titles: Sequence[str]
) -> tuple[TextUnitRecord, ...]:
    """Return the text units of picks; of an excerpt its part alone.

    Args:
        titles: of the matched entities.
    """
    rows = pool.rows[[pick.text_unit for pick in picks]]
    informed = informed_entities(pool.candidates, titles, picks)
    return tuple(
        unit if pick.excerpt is None else unit.cut(pick.excerpt.start, pick.excerpt.end, pick.excerpt.n_tokens)
        for unit, pick in zip(read_text_units(index, rows, score_picks(pool, picks), informed), picks, strict=True)
    )


def score_picks(pool: TextUnitPool, picks: Sequence[Pick]) -> np.ndarray:
    """Return the relevance of each pick by PageRank if known, else the similarity of the entity it was taken for."""
    candidates = pool.candidates
    if candidates.relevance is not None:
        return candidates.relevance[[pick.text_unit for pick in picks]]
    return np.append(candidates.similarity, 0.0)[[pick.entity for pick in picks]]


def informed_entities(candidates: Candidates, titles: Sequence[str], picks: Sequence[Pick]) -> list[tuple[str, ...]]:
    """Return the titles of the matched entities that each pick informs or, as an excerpt, mentions; best first."""
    informs = candidates.informs[:, [pick.text_unit for pick in picks]].T.copy()
    for place, pick in enumerate(picks):
        if pick.mentions:
            informs[place, list(pick.mentions)] = True
    return [
        tuple(itertools.compress(titles, informed))
        if pick.excerpt is None
        else tuple(titles[entity] for entity in sorted(pick.excerpt.entities))
        for informed, pick in zip(informs.tolist(), picks, strict=True)
    ]
