"""Basic search: full text and vectors over text units, without the graph; the baseline of the other searches.

Keep out: how text units are ranked (`selection/hybrid_ranking.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphrag_pipeline.query import records
from graphrag_pipeline.query.context import Part, pack_parts, row_costs
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.results import Context, TextUnitRecord
from graphrag_pipeline.query.selection.hybrid_ranking import rank_text_units
from graphrag_pipeline.query.selection.reranking import RerankAccount, rerank_units
from graphrag_pipeline.settings.settings import BasicSearchSettings


@dataclass(frozen=True)
class BasicSelection:
    """A context with the account of its reranking, if the settings have one."""

    context: Context
    reranked: RerankAccount | None = None


def select_basic(index: IndexReader, question: str, settings: BasicSearchSettings) -> BasicSelection:
    """Return the best `top_k` text units that fit `max_context_tokens`, best first; of equal texts the best only."""
    ranked = rank_text_units(index, question, 2 * settings.top_k)
    if settings.rerank:  # further candidates come behind, so that without a score the order is that of basic search
        wider = rank_text_units(index, question, index.settings.rerank_model.n_candidates)
        known = {unit_id for unit_id, _ in ranked}
        ranked = [*ranked, *(found for found in wider if found[0] not in known)]
    rows = index.snapshot.rows_of("text_units", [unit_id for unit_id, _ in ranked])
    found = records.read_text_units(index, rows, np.array([score for _, score in ranked]))
    first_with: dict[str, TextUnitRecord] = {}
    for unit in found:
        first_with.setdefault(unit.text, unit)
    distinct, account = list(first_with.values()), None
    if settings.rerank:
        distinct, account = rerank_units(index, question, distinct)
    distinct = distinct[: settings.top_k]
    parts = [Part("text_units", 1.0, row_costs([unit.n_tokens for unit in distinct]))]
    kept = pack_parts(parts, settings.max_context_tokens)["text_units"]
    return BasicSelection(Context(text_units=tuple(distinct[i] for i in kept)), account)


def select_within(index: IndexReader, question: str, max_tokens: int, rerank: bool = False) -> BasicSelection:
    """Return the selection of a basic search within a budget; its other options are the settings'."""
    changed = {"max_context_tokens": max_tokens, "rerank": rerank}
    return select_basic(index, question, index.settings.search("basic", **changed))
