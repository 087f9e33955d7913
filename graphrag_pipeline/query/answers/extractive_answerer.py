"""The answerer without a model: quotations, findings of reports, and follow-up questions from the graph.

Keep out: choosing passages (`selection/answer_passages.py`), and laying them out (`extractive.py`).
"""

from __future__ import annotations

from dataclasses import replace

from graphrag_pipeline.query.answers import extractive
from graphrag_pipeline.query.answers.model_points import MappedPoints, estimate_static
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_overview
from graphrag_pipeline.query.results import Answer, Context
from graphrag_pipeline.query.search.basic import read_within
from graphrag_pipeline.query.search.community_selection import Selection, rate_without_model
from graphrag_pipeline.query.search.drift import Drift
from graphrag_pipeline.query.search.drift_follow_ups import GraphFollower
from graphrag_pipeline.query.search.global_ import map_points, reduce_points
from graphrag_pipeline.query.search.lazy import LazySelection, select_lazy_context
from graphrag_pipeline.settings.settings import (
    DriftSearchSettings,
    GlobalSearchSettings,
    LazySearchSettings,
    LocalSearchSettings,
)


class ExtractiveAnswerer:
    """Quotes an index; an `answering.Answerer`."""

    def __init__(self, index: IndexReader) -> None:
        self._index = index

    def write_from_context(self, question: str, context: Context, local: LocalSearchSettings | None = None) -> Answer:
        """Quote passages; for an overview question about filtered documents, the most central ones."""
        is_about_some = self._index.document_mask is not None and context.text_units and is_overview(question)
        write = extractive.write_overview if is_about_some else extractive.write_answer
        return write(self._index, question, context, self._index.settings.answers)

    # ------------------------------------------------------------------------------------------------------- global

    def map_reports(self, question: str, selection: Selection, settings: GlobalSearchSettings) -> MappedPoints:
        """Score the findings of the kept reports."""
        points = map_points(self._index, question, selection)
        return MappedPoints(points, static=estimate_static(self._index, settings))

    def write_from_reports(
        self, question: str, mapped: MappedPoints, selection: Selection, settings: GlobalSearchSettings
    ) -> Answer:
        """Quote the best findings; of reports that are all irrelevant, none.

        If a model kept none because the token budget does not let it rate all, the embedded engine rates them instead.
        """
        if selection.is_unpaid:
            selection = rate_without_model(self._index, question, settings)
            mapped = MappedPoints(map_points(self._index, question, selection))
        if selection.is_irrelevant:
            return Answer(f"Not in the index: {selection.describe()}.")
        limits = settings.max_answer_tokens, extractive.MAX_PASSAGES
        chosen = reduce_points(self._index, mapped.points, *limits)
        return extractive.write_global_answer(self._index, question, chosen, selection, settings.max_context_tokens)

    # -------------------------------------------------------------------------------------------------------- drift

    def imagine_answer(self, question: str) -> str:
        """Return the question itself."""
        return question

    def follower(self, question: str, settings: DriftSearchSettings) -> GraphFollower:
        """Follow names through the graph."""
        return GraphFollower(self._index, question, settings)

    def write_from_steps(self, question: str, drift: Drift, settings: DriftSearchSettings) -> Answer:
        """Quote what all steps read; for an overview question, the findings of the reports."""
        if is_overview(question) and drift.selection.kept:
            points = MappedPoints(map_points(self._index, question, drift.selection))
            return self.write_from_reports(question, points, drift.selection, self._index.settings.search("global"))
        context = drift.context
        if not context.text_units:  # a model's steps may have read reports alone
            units = read_within(self._index, question, settings.max_answer_tokens).text_units
            context = replace(context, text_units=units)
        return self.write_from_context(question, context)

    # --------------------------------------------------------------------------------------------------------- lazy

    def split_question(self, question: str, max_subqueries: int) -> tuple[str, ...]:
        """Return the question alone."""
        return (question,)

    def map_text_units(self, question: str, selection: LazySelection, settings: LazySearchSettings) -> MappedPoints:
        """Return no points: passages are quoted from the text units themselves."""
        return MappedPoints(())

    def write_from_text_units(
        self, question: str, mapped: MappedPoints, selection: LazySelection, settings: LazySearchSettings
    ) -> Answer:
        """Quote the relevant text units that fit a context."""
        if selection.tested and not selection.relevant:
            return Answer(f"Not in the index: {selection.describe()}; none says anything about the question.")
        return self.quote_text_units(question, selection, settings)

    def quote_text_units(self, question: str, selection: LazySelection, settings: LazySearchSettings) -> Answer:
        """Quote the relevant text units that fit a context, also in place of a model."""
        context = select_lazy_context(self._index, selection, settings.max_context_tokens)
        write = extractive.write_overview if is_overview(question) else extractive.write_answer
        return write(self._index, question, context, self._index.settings.answers)
