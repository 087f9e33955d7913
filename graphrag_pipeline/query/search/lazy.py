"""Lazy search: text units tested for relevance, best first by community; no community report is read.

The idea of LazyGraphRAG (Microsoft Research, 2024): the index needs only text units and communities, and one `budget`,
the number of relevance tests, trades cost for quality (100, 500 and 1,500 in the publication). Steps: `rank_candidates`
(full text and vectors, over all subqueries), `find_relevant` (`lazy_candidates.py`), `select_lazy_context`, then an
answer from the relevant text units. In the embedded engine a text unit's rating, 0 to 5, is the relevance of its best
passage (`raters.py`). A chat model may split the question, rate, map and answer instead
(`engines/model/answers/answerer.py`).

Measured on 51 questions of 2WikiMultihopQA by `graphrag_pipeline_tests/bench/retrieval.py`, recall@5 / all evidence in
the first 5: 0.426 / 0.157 by passages alone, 0.701 / 0.392 with PageRank relevance, 0.966 / 0.922 with the first
candidates as well (basic search 0.681 / 0.373).

No text unit is more relevant than another to a question that names nothing specific. Without a model, the text unit
with most relationships of each of the largest root communities is then read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphrag_pipeline.query import records
from graphrag_pipeline.query.context import pack_rows, row_costs
from graphrag_pipeline.query.filtering.document_mask import document_rows
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_overview
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.lazy_candidates import RankedUnits, explore, group_by_community, rank_candidates
from graphrag_pipeline.query.search.raters import (
    MAX_UNSEPARATED_ROOTS,
    RatedUnit,
    RelevanceUnitRater,
    UnitRater,
    choose_rater,
)
from graphrag_pipeline.settings.settings import LazySearchSettings
from graphrag_pipeline.text.counted import counted

MAX_FAILURES = 5
"""Irrelevant text units in a row after which a community is skipped."""
BATCH_SIZE = 5
"""Text units of a community tested at once; with a model, in one call."""


@dataclass(frozen=True)
class LazySelection:
    """The relevant text units, and how they were found.

    Attributes:
        tested: in the order of the tests.
        n_candidates: text units that could have been tested.
        n_entered: communities in which a text unit was tested; `n_pruned` of them were given up.
        n_tokens: of the text units tested.
        stopped_by: "budget", or "nothing left" to test.
        rating: counts of ratings, if a model rated.
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
        """The relevant text units, best first: by a model's rating, else by similarity, which orders better."""
        found = [unit for unit in self.tested if unit.rating >= self.threshold]
        return sorted(found, key=lambda unit: (-unit.rating if self.rating else 0, unit.place))

    def describe(self) -> str:
        """Return a summary such as "100 text units tested, 12 of them relevant"."""
        return f"{counted(len(self.tested), 'text units')} tested, {len(self.relevant)} of them relevant"

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
    """Return the relevant text units, best first, that fit the limit; all of them without a limit."""
    found = selection.relevant
    rows, scores = np.array([unit.row for unit in found], dtype=np.int64), np.array([unit.rating for unit in found])
    if max_tokens is not None:
        kept = pack_rows(row_costs(index.column("text_units", "n_tokens")[rows].tolist()), max_tokens)
        rows, scores = rows[kept], scores[kept]
    return Context(text_units=records.read_text_units(index, rows, scores))


def needs_no_test(index: IndexReader, question: str) -> bool:
    """Return whether no text unit is more relevant than another, since the question names nothing specific."""
    return is_overview(question) and not index.settings.rating.uses_model


def find_relevant(
    index: IndexReader, question: str, subqueries: Sequence[str], settings: LazySearchSettings
) -> LazySelection:
    """Return the text units that pass the relevance tests; `rating.engine` names the rater.

    Args:
        subqueries: the question, and simpler ones that it was split into.

    Raises:
        PipelineError: no call to the model can be answered, or the budget of the root is spent.
    """
    candidates = rank_candidates(index, subqueries, settings.budget)
    rater = choose_rater(index).of_text_units(question, RelevanceUnitRater(index, subqueries, candidates), settings)
    return find_relevant_units(index, subqueries, candidates, rater, settings)


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

    found = explore(group_by_community(index, rows), test, settings.budget, MAX_FAILURES, BATCH_SIZE)
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


def _add_documents(index: IndexReader, chosen: list[int], n_relationships: np.ndarray) -> list[int]:
    """Return the chosen text units, then of each other document that with most relationships, then the next."""
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
    """Return text units that represent all that may be read, within a budget; no report is read and no test is made."""
    selection = select_overview(index, question, index.settings.search("lazy"))
    return select_lazy_context(index, selection, max_tokens)


def select_overview(index: IndexReader, question: str, settings: LazySearchSettings) -> LazySelection:
    """Select the text unit with most relationships of each of the largest root communities; no test is made.

    If filters leave few communities, text units of the documents that match are added.
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
