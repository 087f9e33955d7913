"""Lazy search: text units tested for relevance, best first by community; no community report is read.

The idea of LazyGraphRAG: all that an index must hold are text units and the graph's communities, and one `budget`, the
number of relevance tests, trades cost for quality (100, 500 and 1,500 in the publication). Steps: `rank_candidates`
(full text and vectors, over all subqueries), `find_relevant_units` (`relevance_tests.py`), `select_lazy_context`, then
an answer from the relevant text units. In the embedded engine a text unit's rating is the relevance of its best passage
(`relevance.py`) on a scale of 0 to 5, `report_rating.RATING_STEPS`; a chat model may split the question, rate, map and
answer instead (`model_lazy.py`).

Measured on 51 questions of 2WikiMultihopQA as `bench/retrieval.py` does, recall@5 / all evidence in the first 5: by
passages alone 0.426 / 0.157, with the walk's nearness 0.701 / 0.392, with the `N_BASIC` nearest besides 0.956 / 0.902
(basic search 0.691 / 0.392).

A question that names nothing specific has no relevance to test by: without a model the text unit with most
relationships of each of the largest root communities is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from graphrag_pipeline.query import records
from graphrag_pipeline.query.context import pack_rows, row_costs
from graphrag_pipeline.query.filtering.document_mask import document_rows
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words, is_overview
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.global_ import MAX_UNSEPARATED_ROOTS
from graphrag_pipeline.query.search.lazy_candidates import RankedUnits, group_by_community, rank_candidates
from graphrag_pipeline.query.search.relevance_tests import explore
from graphrag_pipeline.query.search.report_rating import RATING_STEPS
from graphrag_pipeline.query.selection.local_text_units import N_BASIC
from graphrag_pipeline.query.selection.passages import passages_of, sentences_of, text_of
from graphrag_pipeline.query.understanding.relevance import make_background, score_relevance
from graphrag_pipeline.settings.settings import LazySearchSettings

MAX_BACKGROUND_UNITS = 50
NEAREST_RATING = 2
"""The least rating of the text units nearest to the names in a question, without a model."""


@dataclass(frozen=True)
class RatedUnit:
    """A text unit with its rating, 0-5; `row` is its position in the contract table, `place` that in similarity."""

    row: int
    rating: int
    place: int


class UnitRater(Protocol):
    """Rates text units against one question."""

    @property
    def account(self) -> Mapping[str, int]:
        """How ratings were had; empty where no model was asked."""
        ...

    def rate(self, batches: Sequence[Sequence[int]]) -> list[list[RatedUnit]]:
        """Rate batches of rows of text units, results in order."""
        ...


@dataclass(frozen=True)
class LazySelection:
    """Which text units are relevant, and the account of how they were found.

    Attributes:
        tested: in the order of the tests.
        n_candidates: text units that could have been tested.
        n_entered: communities in which something was tested; `n_pruned` of them were given up.
        n_tokens: of the text units tested.
        stopped_by: "budget", or "nothing left" to test.
        rating: how ratings were had, where a model was asked.
    """

    subqueries: tuple[str, ...]
    tested: tuple[RatedUnit, ...]
    threshold: int
    budget: int
    n_candidates: int
    n_entered: int = 0
    n_pruned: int = 0
    n_tokens: int = 0
    stopped_by: str = "nothing left"
    is_overview: bool = False
    rating: Mapping[str, int] = field(default_factory=dict)

    @property
    def relevant(self) -> list[RatedUnit]:
        """Best first: by a model's rating, else by similarity, which orders better than what is tested without one."""
        found = [unit for unit in self.tested if unit.rating >= self.threshold]
        return sorted(found, key=lambda unit: (-unit.rating if self.rating else 0, unit.place))

    def account(self) -> dict[str, Any]:
        return {
            "budget": self.budget,
            "tests": 0 if self.is_overview else len(self.tested),
            "tested_tokens": self.n_tokens,
            "relevant": len(self.relevant),
            "candidates": self.n_candidates,
            "communities": self.n_entered,
            "pruned": self.n_pruned,
            "stopped_by": self.stopped_by,
            "subqueries": list(self.subqueries),
            "is_overview": self.is_overview,
            **self.rating,
        }


def select_lazy_context(index: IndexReader, selection: LazySelection, max_tokens: int | None) -> Context:
    """The relevant text units, best first, as far as they fit; all of them without a limit."""
    found = selection.relevant
    rows, scores = np.array([unit.row for unit in found], dtype=np.int64), np.array([unit.rating for unit in found])
    if max_tokens is not None:
        kept = pack_rows(row_costs(index.column("text_units", "n_tokens")[rows].tolist()), max_tokens)
        rows, scores = rows[kept], scores[kept]
    return Context(text_units=records.read_text_units(index, rows, scores))


def find_relevant_units(
    index: IndexReader,
    subqueries: Sequence[str],
    candidates: RankedUnits,
    rater: UnitRater,
    settings: LazySearchSettings,
) -> LazySelection:
    """Test candidates best first within the budget (see the module)."""
    rows = candidates.rows
    rated: dict[int, RatedUnit] = {}

    def test(batches: list[list[int]]) -> list[list[bool]]:
        tested = rater.rate([rows[batch].tolist() for batch in batches])
        rated.update((unit.row, unit) for units in tested for unit in units)
        return [[unit.rating >= settings.threshold for unit in units] for units in tested]

    found = explore(group_by_community(index, rows), test, settings.budget, settings.max_failures, settings.batch_size)
    return LazySelection(
        subqueries=tuple(subqueries),
        tested=tuple(rated[row] for row in rows[list(found.tested)].tolist()),
        threshold=settings.threshold,
        budget=settings.budget,
        n_candidates=len(rows),
        n_entered=len(found.entered),
        n_pruned=len(found.pruned),
        n_tokens=int(index.column("text_units", "n_tokens")[rows[list(found.tested)]].sum()),
        stopped_by="nothing left" if found.is_exhausted else "budget",
        rating=dict(rater.account),
    )


class RelevanceUnitRater:
    """The embedded engine: a text unit rates as its best passage does, for the subquery that it says most about.

    What the walk from the names reaches rates as it is near: the second of two facts that a question joins shares few
    words with it. The `N_BASIC` nearest rate `NEAREST_RATING` at least, so that the search is not below basic search.
    """

    def __init__(self, index: IndexReader, subqueries: Sequence[str], candidates: RankedUnits) -> None:
        self.account: Mapping[str, int] = {}
        self._index = index
        self._place = {row: place for place, row in enumerate(candidates.rows.tolist())}
        self._nearness = candidates.nearness.copy()
        nearest = self._nearness[:N_BASIC]
        nearest[nearest > 0] = np.maximum(nearest[nearest > 0], RATING_STEPS[NEAREST_RATING - 1])
        words, vectors, _ = self._read_passages(candidates.rows[:MAX_BACKGROUND_UNITS].tolist())
        self._backgrounds = [make_background(text, index.embed_passages, words, vectors) for text in subqueries]

    def rate(self, batches: Sequence[Sequence[int]]) -> list[list[RatedUnit]]:
        """See `UnitRater.rate`."""
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
        """Content words and vectors of the passages of text units, and the place of each one's text unit."""
        units = records.read_text_units(self._index, np.array(rows, dtype=np.int64), np.zeros(len(rows)))
        found = [(i, text_of(p)) for i, unit in enumerate(units) for p in passages_of(sentences_of(unit))]
        texts = [text for _, text in found]
        owners = np.array([place for place, _ in found], dtype=np.int64)
        return [content_words(text) for text in texts], self._index.embed_passages(texts), owners


def find_by_relevance(index: IndexReader, question: str, settings: LazySearchSettings) -> LazySelection:
    """The embedded engine's tests, of the question as it is."""
    if is_overview(question):
        return select_overview(index, question, settings)
    candidates = rank_candidates(index, [question], settings.budget)
    rater = RelevanceUnitRater(index, [question], candidates)
    return find_relevant_units(index, [question], candidates, rater, settings)


def _add_documents(index: IndexReader, chosen: list[int], n_relationships: np.ndarray) -> list[int]:
    """The text units chosen, then that with most relationships of each other document, then the next."""
    rows = np.flatnonzero(index.row_mask("text_units"))
    rows = rows[np.argsort(-n_relationships[rows], kind="stable")]
    documents = document_rows(index.snapshot)
    seen = Counter(documents[chosen].tolist())
    order = []
    for row in rows[~np.isin(rows, chosen)].tolist():
        order.append((seen[documents[row]], row))
        seen[documents[row]] += 1
    order.sort(key=lambda item: item[0])
    return [*chosen, *(row for _, row in order)][:MAX_UNSEPARATED_ROOTS]


def read_overview(index: IndexReader, question: str, max_tokens: int) -> Context:
    """The text units that stand for what may be read, within a budget: without a report, and without a test."""
    selection = select_overview(index, question, index.settings.lazy_search)
    return select_lazy_context(index, selection, max_tokens)


def select_overview(index: IndexReader, question: str, settings: LazySearchSettings) -> LazySelection:
    """Of each of the largest root communities the text unit with most relationships; no test is made.

    Where filters leave few communities, the documents that pass stand in for them.
    """
    n_relationships = index.snapshot.adjacency.counts("text_unit_relationships")
    roots = np.flatnonzero(records.root_mask(index))
    sizes = index.column("communities", "size")[roots]
    largest = roots[np.argsort(-sizes, kind="stable")[:MAX_UNSEPARATED_ROOTS]]
    chosen: list[int] = []
    for community in index.snapshot.take("communities", largest, ["text_unit_ids"]):
        rows = np.sort(index.snapshot.rows_of("text_units", list(community["text_unit_ids"] or ())))
        rows = rows[(rows >= 0) & ~np.isin(rows, chosen)]
        chosen += rows[np.argsort(-n_relationships[rows], kind="stable")[:1]].tolist()
    if index.document_mask is not None and len(chosen) < MAX_UNSEPARATED_ROOTS:  # few communities may be read
        chosen = _add_documents(index, chosen, n_relationships)
    return LazySelection(
        subqueries=(question,),
        tested=tuple(RatedUnit(row, settings.threshold, place) for place, row in enumerate(chosen)),
        threshold=settings.threshold,
        budget=settings.budget,
        n_candidates=int(index.row_mask("text_units").sum()),
        n_entered=len(largest),
        is_overview=True,
    )
