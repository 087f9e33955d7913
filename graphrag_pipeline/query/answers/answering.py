"""The two answerers: the embedded engine and a chat model; only `choose_answerer` picks one by the settings.

An answerer writes the answer of each search. It also makes what a search needs from it before: points of reports and
text units, follow-up questions, subqueries. Keep out: how either writes.
"""

from __future__ import annotations

from typing import Protocol

from graphrag_pipeline.query.answers.extractive_answerer import ExtractiveAnswerer
from graphrag_pipeline.query.answers.model_answerer import ModelAnswerer
from graphrag_pipeline.query.answers.model_points import MappedPoints
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.results import Answer, Context
from graphrag_pipeline.query.search.community_selection import Selection
from graphrag_pipeline.query.search.drift import Drift, Follower
from graphrag_pipeline.query.search.lazy import LazySelection
from graphrag_pipeline.query.streams import OnToken
from graphrag_pipeline.settings.settings import (
    DriftSearchSettings,
    GlobalSearchSettings,
    LazySearchSettings,
    LocalSearchSettings,
)


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
    """Return the answerer that `answers.engine` names.

    Args:
        on_token: gets a model's text as it comes.
    """
    if index.settings.answers.engine == "model":
        return ModelAnswerer(index, on_token)
    return ExtractiveAnswerer(index)
