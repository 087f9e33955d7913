"""Ratings of text units against a question, 0 to 5: the protocol of a rater, and the embedded engine's rater.

Without a model a text unit rates as its best passage does: the passage's relevance (`understanding/relevance.py`) in
`report_rating.RATING_STEPS`. A chat model may rate instead (`model_unit_rating.py`). Keep out: which text units are
tested next (`relevance_tests.py`), and what a rating leads to (`lazy.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from graphrag_pipeline.query import records
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.search.lazy_candidates import RankedUnits
from graphrag_pipeline.query.search.report_rating import RATING_STEPS
from graphrag_pipeline.query.selection.answer_passages import rank_passages
from graphrag_pipeline.query.selection.local_text_units import N_RESERVED, N_SEEDS
from graphrag_pipeline.query.selection.passages import passages_of, sentences_of, text_of
from graphrag_pipeline.query.understanding.relevance import make_background, score_relevance

MAX_BACKGROUND_UNITS = 50
NEAREST_RATING = 2
"""Without a model, the least rating of the first candidates."""


@dataclass(frozen=True)
class RatedUnit:
    """A text unit with its rating, 0-5; `row` is its position in the contract table, `place` its rank by similarity."""

    row: int
    rating: int
    place: int


_Passages = tuple[list[frozenset[str]], np.ndarray]
"""Content words and vectors of the passages of a text unit."""


class UnitRater(Protocol):
    """Rates text units against one question."""

    @property
    def account(self) -> Mapping[str, int]:
        """Counts of ratings; empty if no model rates."""
        ...

    def rate(self, batches: Sequence[Sequence[int]]) -> list[list[RatedUnit]]:
        """Rate batches of rows of text units, results in order."""
        ...


class RelevanceUnitRater:
    """The embedded engine's rater: the relevance of the best passage to any subquery.

    Text units that PageRank reaches from the names in the question rate at least by their nearness: the second of two
    facts that a question joins shares few words with it. The first `N_RESERVED` candidates, as many as local search has
    places for, rate at least `NEAREST_RATING`, so that the search is not below basic search. Those that
    PageRank does not reach do not if none of them answers (`selection/answer_passages.py`).
    """

    def __init__(self, index: IndexReader, subqueries: Sequence[str], candidates: RankedUnits) -> None:
        self.account: Mapping[str, int] = {}
        self._index = index
        self._place = {row: place for place, row in enumerate(candidates.rows.tolist())}
        self._nearness = candidates.nearness.copy()
        first = self._read_units(candidates.rows[:N_SEEDS].tolist())
        is_covered = all(rank_passages(index, text, first, 1).is_answer for text in subqueries)
        lifted = self._nearness[:N_RESERVED]
        lifted[(lifted > 0) | is_covered] = np.maximum(lifted, RATING_STEPS[NEAREST_RATING - 1])[
            (lifted > 0) | is_covered
        ]
        background = candidates.rows[:MAX_BACKGROUND_UNITS].tolist()
        read = zip(background, self._split_units(background), strict=True)
        self._kept: dict[int, _Passages] = dict(read)  # they are also the first to be rated
        words, vectors, _ = self._read_passages(background)
        self._backgrounds = [make_background(text, index.embed_passages, words, vectors) for text in subqueries]

    def rate(self, batches: Sequence[Sequence[int]]) -> list[list[RatedUnit]]:
        """Rate as `UnitRater.rate` says."""
        return [self._rate_batch(list(batch)) for batch in batches]

    def _rate_batch(self, rows: list[int]) -> list[RatedUnit]:
        words, vectors, owners = self._read_passages(rows)
        relevance = np.max([score_relevance(background, words, vectors) for background in self._backgrounds], axis=0)
        rated = []
        for i, row in enumerate(rows):
            place = self._place[row]
            value = max(relevance[owners == i].max(initial=0.0), self._nearness[place])
            rated.append(RatedUnit(row, sum(bool(value >= step) for step in RATING_STEPS), place))
        return rated

    def _read_passages(self, rows: list[int]) -> tuple[list[frozenset[str]], np.ndarray, np.ndarray]:
        """Return content words and vectors of the passages of text units, and the position of each one's text unit."""
        other = [row for row in rows if row not in self._kept]
        fresh = dict(zip(other, self._split_units(other), strict=True)) if other else {}
        found = [self._kept[row] if row in self._kept else fresh[row] for row in rows]
        vectors = [some for _, some in found] or [self._index.embed_passages([])]
        owners = np.repeat(np.arange(len(found)), [len(words) for words, _ in found])
        return [one for words, _ in found for one in words], np.concatenate(vectors), owners

    def _split_units(self, rows: list[int]) -> list[_Passages]:
        """Return content words and vectors of the passages of each text unit."""
        texts = [[text_of(passage) for passage in passages_of(sentences_of(unit))] for unit in self._read_units(rows)]
        vectors = self._index.embed_passages([text for some in texts for text in some])
        ends = np.cumsum([len(some) for some in texts])
        split = np.split(vectors, ends[:-1]) if texts else []
        return [(list(map(content_words, some)), own) for some, own in zip(texts, split, strict=True)]

    def _read_units(self, rows: list[int]) -> Sequence[TextUnitRecord]:
        return records.read_text_units(self._index, np.array(rows, dtype=np.int64), np.zeros(len(rows)))
