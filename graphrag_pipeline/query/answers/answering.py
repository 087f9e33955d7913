"""The port `Answerer`: writes the answers of all searches over one index.

It also makes what a search needs from it before: points of reports and text units, follow-up questions, subqueries.
Keep out: how an engine writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from graphrag_pipeline.ports import load_port
from graphrag_pipeline.query import records
from graphrag_pipeline.query.context import pack_batches, row_costs
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.results import Answer, Context, Unread
from graphrag_pipeline.query.search.community_selection import Selection, find_large
from graphrag_pipeline.query.search.drift import Drift, Follower
from graphrag_pipeline.query.search.global_ import Point
from graphrag_pipeline.query.search.lazy import LazySelection
from graphrag_pipeline.query.streams import OnToken
from graphrag_pipeline.settings.settings import (
    DriftSearchSettings,
    GlobalSearchSettings,
    LazySearchSettings,
    LocalSearchSettings,
)


@dataclass(frozen=True)
class MappedPoints:
    """The points of a selection, best first, and how they were made.

    Attributes:
        account: of a model: batches (`batches`), those that `failed`, `prompt_tokens`.
        lost: points and citations of its replies that were left out, by reason.
        failures: why batches have no points, each reason once.
        static: the result of `estimate_static`.
    """

    points: tuple[Point, ...]
    account: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    static: Mapping[str, int] = field(default_factory=dict)

    def unread(self, parts: str) -> Unread | None:
        """Return how many batches failed, and why; None if none did.

        Args:
            parts: what the batches are, in the plural.
        """
        n_failed = self.account.get("failed", 0)
        return Unread(parts, n_failed, self.account["batches"], self.failures) if n_failed else None

    def details(self) -> dict[str, Any]:
        """Return the number of points and how they were made, for the result of the search."""
        details: dict[str, Any] = {"points": len(self.points)}
        if self.account:
            details["map"] = {**self.account, "lost": dict(self.lost), "failures": list(self.failures)}
        if self.static:
            details["static_search"] = dict(self.static)
        return details


def estimate_static(index: IndexReader, settings: GlobalSearchSettings, overhead: int = 0) -> dict[str, int]:
    """Return the cost of reading all reports of the frontier at `settings.level`: reports, calls and prompt tokens.

    Args:
        overhead: tokens of each prompt besides its reports; the embedded engine has none.
    """
    is_read = records.frontier_mask(index, settings.level) & find_large(index, settings)
    numbers = index.column("communities", "community")[np.flatnonzero(is_read)]
    rows = index.rows_of_numbers("community_reports", "community", numbers)
    costs = row_costs(index.column("community_reports", "n_tokens")[rows[rows >= 0]].tolist())
    n_calls = len(pack_batches(costs, settings.max_context_tokens))
    tokens = sum(costs) + n_calls * overhead
    return {"reports": len(costs), "calls": n_calls, "prompt_tokens": tokens}


class Answerer(Protocol):
    """Writer of answers about one index.

    Every method of a model's answerer may raise a PipelineError: no call can be answered, or the budget of the root is
    spent.
    """

    def write_from_context(self, question: str, context: Context, local: LocalSearchSettings | None = None) -> Answer:
        """Return the answer to a local or basic search.

        Args:
            local: the settings of a local search, which add the conversation and columns to what a model reads.
        """
        ...

    def map_reports(self, question: str, selection: Selection, settings: GlobalSearchSettings) -> MappedPoints:
        """Return the points of the kept reports of a global search, best first."""
        ...

    def write_from_reports(
        self, question: str, mapped: MappedPoints, selection: Selection, settings: GlobalSearchSettings
    ) -> Answer:
        """Return the answer to a global search, from the points of the kept reports."""
        ...

    def imagine_answer(self, question: str) -> str:
        """Return the text whose vector finds the reports that a DRIFT search starts from."""
        ...

    def follower(self, question: str, settings: DriftSearchSettings) -> Follower:
        """Return the maker of a DRIFT search's steps."""
        ...

    def write_from_steps(self, question: str, drift: Drift, settings: DriftSearchSettings) -> Answer:
        """Return the answer to a DRIFT search, from all its steps."""
        ...

    def split_question(self, question: str, max_subqueries: int) -> tuple[str, ...]:
        """Return the question and the simpler ones that a lazy search tests text units against too."""
        ...

    def map_text_units(self, question: str, selection: LazySelection, settings: LazySearchSettings) -> MappedPoints:
        """Return the points of the relevant text units, best first.

        There are none if one call can read all text units, or if the token budget allows no more: the answer is then
        written from a context.
        """
        ...

    def write_from_text_units(
        self, question: str, mapped: MappedPoints, selection: LazySelection, settings: LazySearchSettings
    ) -> Answer:
        """Return the answer to a lazy search, from the points of its text units or from those that fit a context."""
        ...


def choose_answerer(index: IndexReader, on_token: OnToken | None = None) -> Answerer:
    """Return the answerer of `answers.engine`.

    Args:
        on_token: gets the text of an answer as it comes, from an engine that writes it piece by piece.

    Raises:
        PipelineError: no such answerer is installed.
    """
    answerer: Answerer = load_port("answerer", index.settings.answers.engine)(index, on_token)
    return answerer
