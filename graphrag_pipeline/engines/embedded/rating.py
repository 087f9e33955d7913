"""The rater of the embedded engine: relevance by words and vectors, as search computes it."""

from __future__ import annotations

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.search.raters import RelevanceRater, RelevanceUnitRater
from graphrag_pipeline.settings.settings import GlobalSearchSettings, LazySearchSettings


class EmbeddedRater:
    """Leaves the ratings of search as they are; a `query.search.raters.Rater`."""

    def __init__(self, index: IndexReader) -> None:
        pass

    def of_reports(self, by_relevance: RelevanceRater, settings: GlobalSearchSettings) -> RelevanceRater:
        """Return the rater by relevance."""
        return by_relevance

    def of_text_units(
        self, question: str, by_relevance: RelevanceUnitRater, settings: LazySearchSettings
    ) -> RelevanceUnitRater:
        """Return the rater by relevance."""
        return by_relevance
