"""Hybrid ranking of text units by full text and vectors, for basic search and as the baseline of the graph strategies.

    score = z(BM25 of the text unit under its document's title) + WINDOW_WEIGHT * z(cosine of its best window)

z(x) = (x - mean) / standard deviation, over the candidates. A window is two neighbouring sentences (`windows.py`).
Candidates are the best text units by BM25 and the best by the text unit's own vector. One that only the vectors find
has BM25 score 0: looking its low score up costs a scan and finds no more (0.681 / 0.373). English stop words of the
question are left out. Words such as "where" and "did" are rare in texts, so BM25 would give them weight (0.642 / 0.314
instead of 0.662 / 0.333).

Measured by `graphrag_pipeline_tests/bench/retrieval.py` on 51 questions of 2WikiMultihopQA, recall@5 / all evidence in
the first 5: BM25 0.662 / 0.333 (0.593 / 0.275 without titles), window vectors alone 0.235 / 0.098, text unit vectors
alone 0.191 / 0.039, basic 0.691 / 0.392. On 32 questions on A Christmas Carol, mean reciprocal rank in text units of
300 and 1,200 tokens: BM25 0.447 and 0.557, basic 0.473 and 0.581.
"""

from __future__ import annotations

import re

import numpy as np

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_searched
from graphrag_pipeline.query.selection.windows import embed_question, find_best_windows

TEXT_UNIT_VECTORS = "default-text_unit-text"
WINDOW_WEIGHT = 0.25
N_BY_WORDS = 100
"""Number of candidates by BM25; 3 k if that is more."""
N_BY_VECTOR = 20
"""Number of candidates by vector; 50 find no more evidence."""
_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")


def rank_text_units(index: IndexReader, question: str, k: int) -> list[tuple[str, float]]:
    """Return the k best text units as (id, fused score), best first; ties by text unit vector, then by id."""
    table = index.snapshot.vectors(TEXT_UNIT_VECTORS)
    words = searched_words(question)
    by_words = dict(table.search_text(words, max(N_BY_WORDS, 3 * k)))
    near = dict(table.search(index.embed([question])[0], max(N_BY_VECTOR, k)))
    ids = sorted({*by_words, *near})
    if not ids:
        return []
    rows = index.snapshot.rows_of("text_units", ids)
    windows = find_best_windows(index.snapshot.sentences, embed_question(index.snapshot, question), rows)
    scores = fuse(np.array([by_words.get(unit_id, 0.0) for unit_id in ids]), windows.scores)
    found = sorted(zip(ids, scores.tolist(), strict=True), key=lambda pair: (-pair[1], -near.get(pair[0], 0), pair[0]))
    return found[:k]


def searched_words(question: str) -> str:
    """Return the words of a question to search full text for: without function words, unless all words are."""
    kept = [word for word in _WORD.findall(question) if is_searched(word)]
    return " ".join(kept) or question


def fuse(by_words: np.ndarray, by_window: np.ndarray) -> np.ndarray:
    """Return z(by_words) + WINDOW_WEIGHT * z(by_window), rounded so that equal candidates tie on any machine."""
    return np.round(_standardise(by_words) + WINDOW_WEIGHT * _standardise(by_window), 6)


def _standardise(scores: np.ndarray) -> np.ndarray:
    spread = float(scores.std())
    return (scores - scores.mean()) / spread if spread > 1e-9 else np.zeros(len(scores))
