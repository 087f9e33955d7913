"""Choice of the rater of community reports and of text units, by `rating.engine`: no other module asks for the engine.

Keep out: how either rates.
"""

from __future__ import annotations

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.search.map_reserve import MapReserve
from graphrag_pipeline.query.search.model_rating import ModelRater
from graphrag_pipeline.query.search.model_unit_rating import ModelUnitRater
from graphrag_pipeline.query.search.report_rating import Rater, RelevanceRater
from graphrag_pipeline.query.search.unit_rating import RelevanceUnitRater, UnitRater
from graphrag_pipeline.query.token_budget import answer_cost
from graphrag_pipeline.settings.settings import GlobalSearchSettings, LazySearchSettings


def is_model_rating(index: IndexReader) -> bool:
    """Return whether a chat model rates."""
    return index.settings.rating.engine == "model"


def choose_report_rater(by_relevance: RelevanceRater, settings: GlobalSearchSettings) -> Rater:
    """Return the rater of reports; a model leaves enough tokens for the map and the answer."""
    index = by_relevance.index
    if not is_model_rating(index):
        return by_relevance
    reserve = MapReserve(index, by_relevance.question, settings)
    return ModelRater(index, by_relevance.question, by_relevance, settings, reserve)


def choose_unit_rater(
    index: IndexReader, question: str, by_relevance: RelevanceUnitRater, settings: LazySearchSettings
) -> UnitRater:
    """Return the rater of text units; a model leaves enough tokens for a call about a context."""
    if not is_model_rating(index):
        return by_relevance
    reserve = answer_cost(index.settings, settings.max_context_tokens)
    return ModelUnitRater(index, question, by_relevance, reserve)
