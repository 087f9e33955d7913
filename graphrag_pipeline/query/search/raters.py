"""The port `Rater`: how relevant reports and text units are to a question.

The relevance of words and vectors is always there; an engine may return it, or rate in its own way and use it for ties
and for what it does not rate. Keep out: how an engine rates.
"""

from __future__ import annotations

from typing import Protocol

from graphrag_pipeline.ports import load_port
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.search.report_rating import RelevanceRater, ReportRater
from graphrag_pipeline.query.search.unit_rating import RelevanceUnitRater, UnitRater
from graphrag_pipeline.settings.settings import GlobalSearchSettings, LazySearchSettings


class Rater(Protocol):
    """Makes the raters of one question; made from an `IndexReader`."""

    def of_reports(self, by_relevance: RelevanceRater, settings: GlobalSearchSettings) -> ReportRater:
        """Return the rater of community reports for dynamic community selection."""
        ...

    def of_text_units(self, question: str, by_relevance: RelevanceUnitRater, settings: LazySearchSettings) -> UnitRater:
        """Return the rater of text units for lazy search."""
        ...


def choose_rater(index: IndexReader) -> Rater:
    """Return the rater of `rating.engine`.

    Raises:
        PipelineError: no such rater is installed.
    """
    rater: Rater = load_port("rater", index.settings.rating.engine)(index)
    return rater
