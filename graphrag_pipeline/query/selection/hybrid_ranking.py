"""Hybrid ranking of text units by full text and vectors, for basic search and as the floor of the graph strategies.

    score = BM25 / largest BM25 + WINDOW_WEIGHT * s * z(cosine of the best window)

z(x) = (x - mean) / standard deviation, and s is the standard deviation of the first term, all over the candidates. The
result is divided by its largest value and is at least 0.

BM25 is that of the text unit under its document's title. A window is two neighbouring sentences (`windows.py`). The
weight is small because static vectors blur long texts: they only decide between text units whose words match almost
equally. The sum of reciprocal ranks let them overrule the words.

The best text unit of each document counts in full. Each further one counts `REPEAT`, so that several text units of one
document do not crowd out a second document that the question needs. The order inside a document stays.

Candidates are the best text units by BM25 and the best by the text unit's own vector. One that only the vectors find
has BM25 score 0: looking its low score up costs a scan and finds no more. English stop words of the question are left
out. Words such as "where" and "did" are rare in texts, so BM25 would give them weight (0.642 / 0.314 instead of
0.662 / 0.333 on 2WikiMultihopQA). `graphrag_pipeline_tests/bench/retrieval.py` measures the ranking on several corpora.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_searched
from graphrag_pipeline.query.selection.windows import embed_question, find_best_windows

TEXT_UNIT_VECTORS = "default-text_unit-text"
WINDOW_WEIGHT = 0.15
REPEAT = 0.6
"""Factor of the score of a text unit whose document has a better one; 0.5 to 0.7 find as much evidence."""
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
    near = dict(table.search(index.embed_question(question), max(N_BY_VECTOR, k)))
    ids = sorted({*by_words, *near})
    if not ids:
        return []
    rows = index.snapshot.rows_of("text_units", ids)
    windows = find_best_windows(index.snapshot.sentences, embed_question(index.snapshot, question), rows)
    fused = fuse(np.array([by_words.get(unit_id, 0.0) for unit_id in ids]), windows.scores)
    order = sorted(range(len(ids)), key=lambda i: (-fused[i], -near.get(ids[i], 0.0), ids[i]))
    scores = weigh_repeats(fused[order], documents_of(index, rows[order]))
    return [(ids[order[i]], float(scores[i])) for i in np.argsort(-scores, kind="stable")[:k].tolist()]


def documents_of(index: IndexReader, rows: np.ndarray) -> list[str]:
    """Return the id of each text unit's document, "" if an import has none."""
    return [unit["document_id"] or "" for unit in index.snapshot.take("text_units", rows, ["document_id"])]


def weigh_repeats(scores: np.ndarray, documents: Sequence[str]) -> np.ndarray:
    """Multiply the score of each text unit by `REPEAT` if one before it is of the same document.

    Args:
        scores: float (n,), best first.
        documents: id of each text unit's document; "" is unknown, and no repetition.
    """
    seen: set[str] = set()
    factors = np.ones(len(scores))
    for place, document in enumerate(documents):
        if document and document in seen:
            factors[place] = REPEAT
        seen.add(document)
    return np.round(scores * factors, 6)


def searched_words(question: str) -> str:
    """Return the words of a question to search full text for: without function words, unless all words are."""
    kept = [word for word in _WORD.findall(question) if is_searched(word)]
    return " ".join(kept) or question


def fuse(by_words: np.ndarray, by_window: np.ndarray) -> np.ndarray:
    """Return the score of the module's formula, 0 to 1, rounded so that equal candidates tie on any machine.

    If no word is found, the windows decide alone.
    """
    words = to_one(by_words)
    weight = WINDOW_WEIGHT * float(words.std()) or 1.0
    return np.round(to_one(np.maximum(words + weight * _standardise(by_window), 0.0)), 6)


def _standardise(scores: np.ndarray) -> np.ndarray:
    spread = float(scores.std())
    return (scores - scores.mean()) / spread if spread > 1e-9 else np.zeros(len(scores))


def to_one(scores: np.ndarray) -> np.ndarray:
    """Return scores, at least 0, divided by the largest; zeros if that is 0."""
    largest = float(scores.max(initial=0.0))
    return scores / largest if largest > 0 else np.zeros(len(scores))
