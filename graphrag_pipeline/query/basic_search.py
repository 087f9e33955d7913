"""Basic search: full text and vectors over text units, no graph; what no graph method may fall below.

One fusion: the BM25 score of a text unit, standardised over the candidates, plus `VECTOR_WEIGHT` times its cosine,
standardised the same way. Candidates are the best of both lists. Static vectors blur long passages, so their weight is
small: on 51 development questions of 2WikiMultihopQA recall@5 is 0.642 without them, 0.662 at 0.25, 0.598 at 1. So they
do no harm there; a gain of 0.02 is about one question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphrag_pipeline.query import records
from graphrag_pipeline.query.context import Part, pack_parts, row_costs
from graphrag_pipeline.query.results import Context, TextUnitRecord
from graphrag_pipeline.settings import BasicSearchSettings

if TYPE_CHECKING:
    from graphrag_pipeline.query.graph_index import GraphIndex

TEXT_UNIT_VECTORS = "default-text_unit-text"
VECTOR_WEIGHT = 0.25
N_CANDIDATES = 50
"""Of each list; more where more text units are asked for."""


def select_basic_context(index: GraphIndex, question: str, settings: BasicSearchSettings) -> Context:
    """The best `top_k` text units that fit `max_context_tokens`, best first; of equal texts the best only."""
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


def rank_text_units(index: GraphIndex, question: str, k: int) -> list[tuple[str, float]]:
    """The k text units that answer best: (id, fused score), best first, ties by id."""
    vector = index.embed([question])[0]
    table = index.snapshot.vectors(TEXT_UNIT_VECTORS)
    n_candidates = max(N_CANDIDATES, 3 * k)
    by_words = dict(table.search_text(question, n_candidates))
    ids = sorted({*by_words, *(unit_id for unit_id, _ in table.search(vector, n_candidates))})
    if not ids:
        return []
    scores = fuse(np.array([by_words.get(unit_id, 0.0) for unit_id in ids]), table.vectors(ids) @ vector)
    return sorted(zip(ids, scores.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))[:k]


def fuse(by_words: np.ndarray, by_vector: np.ndarray) -> np.ndarray:
    """Standardised sum of full-text scores and a little of the cosines, rounded so that ties are ties."""
    return np.round(_standardise(by_words) + VECTOR_WEIGHT * _standardise(by_vector), 6)


def _standardise(scores: np.ndarray) -> np.ndarray:
    spread = float(scores.std())
    return (scores - scores.mean()) / spread if spread > 1e-9 else np.zeros(len(scores))
