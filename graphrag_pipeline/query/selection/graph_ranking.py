"""Order of text units that joins basic search and PageRank, for the strategies `graph` and `balanced` and lazy search.

PageRank leads from the documents that words find to documents that share no word with the question, such as the article
about the director of a film. It can do so where documents are articles about entities: a title is the name of an
entity. In news, manuals and books the words of basic search find more. So the order has two forms.

1. Documents are about at least `SUBJECTS` of the names in the question. The first places are the best of basic search,
   one for each name, at most `N_READ`. Then come the *bridges*, at most `N_BRIDGES`, by PageRank: text units about an
   entity that the question does not name and that the first `N_READ` text units of basic search mention. The others
   follow by

       t * PageRank + (1 - t) * basic search ^ SEED_POWER

   Each is divided by its largest value. t is the mean over the names of idf / ln(1 + N), at most 1, where N is the
   number of text units. So a name that is on every page decides little.
2. Otherwise the first `N_FLOOR` are those of basic search, and the others follow by the same sum.

A further text unit of a document counts `REPEAT` as in basic search. Keep out: the computation of PageRank
(`pagerank.py`), token budgets, strategies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.names import NamedQuestion
from graphrag_pipeline.query.selection.hybrid_ranking import to_one, weigh_repeats
from graphrag_pipeline.query.selection.pagerank import MAX_UNITS, Seeds, make_seeds, score_by_pagerank
from graphrag_pipeline.storage.arrays import distinct, expand_rows
from graphrag_pipeline.storage.mentions import Mentions

N_READ = 3
"""Text units of basic search whose mentions lead to bridges."""
N_BRIDGES = 2
SUBJECTS = 0.5
"""Least share of the names in a question that a document is about, for PageRank to lead."""
N_FLOOR = 10
"""Places of basic search if the names are not subjects of documents."""


def rank_with_graph(
    index: IndexReader, named: NamedQuestion, found: Sequence[tuple[int, float]], max_units: int | None = MAX_UNITS
) -> tuple[np.ndarray, np.ndarray]:
    """Rank text units near a question, best first.

    Args:
        found: rows and scores, 0 to 1, of the text units that basic search finds, best first.
        max_units: text units in PageRank's neighbourhood; None computes it over the whole graph.

    Returns:
        Rows, and falling scores from 0 to 1. The order is that of `found` if the question names no known entity.
    """
    mentions = index.snapshot.mentions
    seeds = make_seeds(mentions, named, found)
    of_found = np.array([score for _, score in found])
    if not len(seeds.entities):
        return seeds.text_units, of_found
    units, pagerank = score_by_pagerank(index, named, seeds, max_units)
    may_be_read = index.row_mask("text_units")[units]  # PageRank also scores filtered rows, with 0
    units, pagerank = units[may_be_read], pagerank[may_be_read]
    basic = np.zeros(len(units))
    basic[np.searchsorted(units, seeds.text_units)] = to_one(seeds.unit_weights)
    joined = seeds.pagerank_share * pagerank + (1 - seeds.pagerank_share) * basic
    order = _by_score(units, joined)
    joined[order] = weigh_repeats(joined[order], index.documents_of_units[units[order]])
    order = _by_score(units, joined)
    order = _put_first(order, _find_first(index, named, seeds, units, pagerank))
    return units[order], _falling(joined[order])


def _by_score(rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
    return np.lexsort((rows, -np.round(scores, 9)))


def _put_first(order: np.ndarray, first: np.ndarray) -> np.ndarray:
    return np.r_[first, order[~np.isin(order, first)]]


def _falling(scores: np.ndarray) -> np.ndarray:
    """Return each score, or the largest one after it if that is larger, with ties in order."""
    highest = np.maximum.accumulate(scores[::-1])[::-1]
    return np.round(highest * (1 - 1e-7 * np.arange(len(scores))), 12)


def _find_first(
    index: IndexReader, named: NamedQuestion, seeds: Seeds, units: np.ndarray, pagerank: np.ndarray
) -> np.ndarray:
    """Return the positions in `units` that come first, in order; `units` are ascending rows."""
    mentions = index.snapshot.mentions
    of_basic = np.searchsorted(units, seeds.text_units)
    is_subject = [
        any(mentions.about_indptr[row + 1] > mentions.about_indptr[row] for row in rows) for rows in named.names
    ]
    if np.mean(is_subject) < SUBJECTS:
        return of_basic[:N_FLOOR]
    leading = of_basic[: min(len(named.names), N_READ)]
    bridges = _find_bridges(mentions, seeds, units)
    bridges = bridges[~np.isin(bridges, leading)]
    bridges = bridges[_by_score(units[bridges], pagerank[bridges])]
    documents = index.documents_of_units[units[np.r_[leading, bridges]]].tolist()
    is_first = [document not in documents[:place] for place, document in enumerate(documents)]
    return np.r_[leading, bridges[is_first[len(leading) :]][:N_BRIDGES]]


def _find_bridges(mentions: Mentions, seeds: Seeds, units: np.ndarray) -> np.ndarray:
    """Return the positions of the text units about an entity that the best of basic search mention.

    The entity is neither named by the question nor the topic of these text units.
    """
    _, read = expand_rows(mentions.unit_indptr, seeds.text_units[:N_READ])
    ends = mentions.entities[read]
    reached = np.setdiff1d(ends, np.r_[ends[mentions.is_about[read]], seeds.entities])
    positions, edges = expand_rows(mentions.unit_indptr, units)
    is_bridge = mentions.is_about[edges] & np.isin(mentions.entities[edges], reached)
    return distinct(positions[is_bridge])
