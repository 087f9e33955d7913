"""Hybrid ranking of text units by full text and vectors, for basic search and as the floor of the graph strategies.

    score = BM25 / largest BM25 + WINDOW_WEIGHT * s * z(cosine of the best window)

z(x) = (x - mean) / standard deviation, and s is the standard deviation of the first term, all over the candidates. The
result is divided by its largest value and is at least 0.

BM25 is that of the text unit under its document's title. A window is two neighbouring sentences (`windows.py`). The
weight is small because static vectors blur long texts: they only decide between text units whose words match almost
equally. The sum of reciprocal ranks let them overrule the words.

The best text unit of each document counts in full, each further one `REPEAT` of its score. So of text units that match
almost equally, those of a second document come first, which the question may need. One that matches clearly better
keeps its place: in a long manual or in minutes the answer is often in the second or third text unit of a document. The
order inside a document stays.

Candidates are the `N_BY_WORDS` best text units by BM25 and the `N_BY_VECTOR` best by the text unit's own vector. One
that only the vectors find has BM25 score 0: looking its low score up costs a scan and finds no more. The candidates do
not depend on k, so a longer list begins with the shorter one. If k is larger than their number, text units found
behind them follow by BM25. English stop words of the question are left
out. Words such as "where" and "did" are rare in texts, so BM25 would give them weight (0.642 / 0.314 instead of
0.662 / 0.333 on 2WikiMultihopQA). `graphrag_pipeline_tests/bench/retrieval.py` measures the ranking on several corpora.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_searched
from graphrag_pipeline.query.selection.windows import embed_question, find_best_windows
from graphrag_pipeline.storage.vectors.stores import ScoredIds
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.scripts import spell_both

TEXT_UNIT_VECTORS = "default-text_unit-text"
WINDOW_WEIGHT = 0.15
REPEAT = 0.95
"""Share of its score that a text unit keeps if its document has a better one."""
N_BY_WORDS = 100
"""Number of candidates by BM25."""
N_BY_VECTOR = 20
"""Number of candidates by vector; 50 find no more evidence."""
_WORD = late_re(r"\w+(?:['\u2019]\w+)*")


def rank_text_units(index: IndexReader, question: str, k: int) -> list[tuple[str, float]]:
    """Return the k best text units as (id, fused score), best first; ties by text unit vector, then by id."""
    return begin_ranking(index, question, k)()


def begin_ranking(index: IndexReader, question: str, k: int) -> Callable[[], list[tuple[str, float]]]:
    """Start the searches of a ranking, and return a function that returns the ranking (`rank_text_units`).

    The searches run while the caller does other work.
    """
    if not k:
        return list
    table = index.snapshot.vectors(TEXT_UNIT_VECTORS)
    by_words = table.begin_search_text(searched_words(question), max(N_BY_WORDS, 3 * k))
    near = table.begin_search(index.embed_question(question), max(N_BY_VECTOR, k))
    return lambda: _rank_found(index, question, k, by_words(), near())


def _rank_found(
    index: IndexReader, question: str, k: int, found_by_words: ScoredIds, found_near: ScoredIds
) -> list[tuple[str, float]]:
    by_words, near = dict(found_by_words[:N_BY_WORDS]), dict(found_near[:N_BY_VECTOR])
    ids = sorted({*by_words, *near})
    if not ids:
        return []
    rows = index.snapshot.rows_of("text_units", ids)
    windows = find_best_windows(index.snapshot.sentences, embed_question(index.snapshot, question), rows)
    fused = fuse(np.array([by_words.get(unit_id, 0.0) for unit_id in ids]), windows.scores)
    nearness = np.array([near.get(unit_id, 0.0) for unit_id in ids])
    order = np.lexsort((-nearness, -fused))  # ties stay in the order of ids
    scores = weigh_repeats(fused[order], index.documents_of_units[rows[order]])
    ranked = [(ids[order[i]], float(scores[i])) for i in np.argsort(-scores, kind="stable").tolist()]
    return [*ranked, *_follow(ranked, found_by_words, found_near)][:k]


def _follow(ranked: ScoredIds, by_words: ScoredIds, near: ScoredIds) -> ScoredIds:
    """Return what was found behind the ranked candidates: by BM25, then by vector, with scores below the lowest."""
    known = {unit_id for unit_id, _ in ranked}
    rest = dict(by_words)
    for unit_id, _ in near:
        rest.setdefault(unit_id, 0.0)
    highest = max(rest.values(), default=0.0) or 1.0
    lowest = ranked[-1][1]
    return [(unit_id, lowest * score / highest) for unit_id, score in rest.items() if unit_id not in known]


def weigh_repeats(scores: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """Multiply the score of each text unit whose document has one before it by `REPEAT`.

    Args:
        scores: float (n,), best first.
        documents: number of each text unit's document; -1 is unknown, and no repetition.
    """
    is_repeated = documents >= 0
    is_repeated[np.unique(documents, return_index=True)[1]] = False
    return np.round(scores * np.where(is_repeated, REPEAT, 1.0), 6)


def searched_words(question: str) -> str:
    """Return the words of a question to search full text for: without function words, unless all words are.

    Chinese is searched for in simplified and in traditional characters.
    """
    kept = [word for word in _WORD.findall(question) if is_searched(word)]
    return " ".join(spell_both(" ".join(kept) or question))


def fuse(by_words: np.ndarray, by_window: np.ndarray, weight: float = WINDOW_WEIGHT) -> np.ndarray:
    """Return the score of the module's formula, 0 to 1, rounded so that equal candidates tie on any machine.

    If no word is found, the windows decide alone.

    Args:
        weight: of the windows, in place of WINDOW_WEIGHT.
    """
    words = to_one(by_words)
    spread = weight * float(words.std()) or 1.0
    return np.round(to_one(np.maximum(words + spread * _standardise(by_window), 0.0)), 6)


def _standardise(scores: np.ndarray) -> np.ndarray:
    spread = float(scores.std())
    return (scores - scores.mean()) / spread if spread > 1e-9 else np.zeros(len(scores))


def to_one(scores: np.ndarray) -> np.ndarray:
    """Return scores, at least 0, divided by the largest; zeros if that is 0."""
    largest = float(scores.max(initial=0.0))
    return scores / largest if largest > 0 else np.zeros(len(scores))
