"""Basic search: full text and vectors over text units, without the graph; the baseline of the other searches.

Keep out: how text units are ranked (`selection/hybrid_ranking.py`).
"""

from __future__ import annotations

import numpy as np

from graphrag_pipeline.query import records
from graphrag_pipeline.query.context import Part, pack_parts, row_costs
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.results import Context, TextUnitRecord
from graphrag_pipeline.query.selection.hybrid_ranking import rank_text_units
from graphrag_pipeline.settings.settings import BasicSearchSettings


def select_basic_context(index: IndexReader, question: str, settings: BasicSearchSettings) -> Context:
    """Return the best `top_k` text units that fit `max_context_tokens`, best first; of equal texts the best only."""
    ranked = rank_text_units(index, question, 2 * settings.top_k)
    rows = index.snapshot.rows_of("text_units", [unit_id for unit_id, _ in ranked])
    found = records.read_text_units(index, rows, np.array([score for _, score in ranked]))
    first_with: dict[str, TextUnitRecord] = {}
    for unit in found:
        first_with.setdefault(unit.text, unit)
    distinct = list(first_with.values())[: settings.top_k]
    parts = [Part("text_units", 1.0, row_costs([unit.n_tokens for unit in distinct]))]
    kept = pack_parts(parts, settings.max_context_tokens)["text_units"]
    return Context(text_units=tuple(distinct[i] for i in kept))


def read_within(index: IndexReader, question: str, max_tokens: int) -> Context:
    """Return the context of a basic search within a budget; its other options are those of the settings."""
    settings = index.settings.basic_search.model_copy(update={"max_context_tokens": max_tokens})
    return select_basic_context(index, question, settings)
