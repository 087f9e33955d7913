"""Hybrid ranking of text units by full text and vectors, for basic search and as the floor of the graph strategies.

    score = BM25 / largest BM25 + WINDOW_WEIGHT * s * z(cosine of the best window)

z(x) = (x - mean) / standard deviation, and s is the standard deviation of the first term, all over the candidates. The
result is divided by its largest value and is at least 0.

BM25 is that of the text unit under its document's title. A window is two neighbouring sentences. The
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

Two-sentence windows of text units: similarity of the best one to a question.

    score of a window = cos(q, l1 v1 + l2 v2)

q is the question's vector, v1 and v2 are the vectors of two neighbouring sentences of a text unit, and l1 and l2 their
lengths in characters. A text unit of one sentence has that sentence as its window.

Vectors are the bundled static ones (`indexing/sentence_embeddings.py`), also if another model embeds text units. The
products use the memory-mapped int8 rows, a block at a time, so no window is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.ports import load_static_embedder
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_latin, is_searched
from graphrag_pipeline.query.understanding.named_documents import find_named_documents
from graphrag_pipeline.storage.arrays import Sentences, expand_rows
from graphrag_pipeline.storage.vectors.stores import ScoredIds
from graphrag_pipeline.text.languages import spell_both
from graphrag_pipeline.text.late_patterns import late_re

if TYPE_CHECKING:
    from graphrag_pipeline.storage.snapshots import Snapshot

_BLOCK_SENTENCES = 1_024
"""Sentences per block: 1 MB of float32 rows stays in the processor's cache, and BLAS starts no threads for it."""


def embed_question(snapshot: Snapshot, question: str) -> np.ndarray:
    """Return the vector that windows of a snapshot are compared with, float32 (dimensions,), of length 1 or zeros.

    It is zeros, which match nothing, if most letters of the question are not Latin. Of Chinese, for example, static
    embeddings know only some single characters and the question mark, so their scores would be guesses.

    Raises:
        PipelineError: the snapshot's sentences were embedded by other static embeddings than those installed.
    """
    embeddings = load_static_embedder()
    made_by = snapshot.manifest.sentence_fingerprint
    if made_by and made_by != embeddings.fingerprint:
        raise PipelineError(
            f"snapshot {snapshot.id} has sentence vectors of {made_by!r}, but this release brings "
            f"{embeddings.fingerprint!r}; run `graphrag-pipeline index` (or `import` again) to embed them again"
        )
    return embeddings.embed([question if is_latin(question) else ""])[0]


def score_sentences(sentences: Sentences, vector: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the cosine of sentences to a question's vector, float32 (len(rows),); 0 for one without known words."""
    products = np.zeros(len(rows), dtype=np.float32)
    for start in range(0, len(rows), _BLOCK_SENTENCES):
        block = rows[start : start + _BLOCK_SENTENCES]
        products[start : start + len(block)] = sentences.read_vectors(block).astype(np.float32) @ vector
    lengths = np.maximum(sentences.ends[rows] - sentences.starts[rows], 1)
    return products * sentences.scales[rows] / lengths.astype(np.float32)


def score_best_windows(sentences: Sentences, vector: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the cosine of the best window of each of some text units to a question, float32 (n,).

    It is 0 if the question or all sentences have no known word.

    Args:
        vector: of the question, from `embed_question`.
        rows: row numbers of text units, int (n,).
    """
    positions, places = expand_rows(sentences.indptr, rows)
    bounds = np.searchsorted(positions, np.arange(len(rows) + 1))
    scores, best = _score_windows(sentences, vector, bounds, places), np.zeros(len(rows), dtype=np.float32)
    units = np.flatnonzero(np.diff(bounds) > 0)
    if len(units):
        best[units] = np.maximum.reduceat(scores, bounds[units])
    return best


def _score_windows(sentences: Sentences, vector: np.ndarray, bounds: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the cosine of the window that each sentence starts, float32 (bounds[-1],).

    The last of several sentences of a text unit starts no window: 0.

    Args:
        bounds: sentences `bounds[i]:bounds[i + 1]` are those of the i-th text unit.
        places: rows of the sentences in the arrays.
    """
    scores = np.zeros(bounds[-1], dtype=np.float32)
    # has_next is 0 at the last sentence of each text unit, so that no window reaches into the next text unit.
    has_next = np.ones(len(scores), dtype=np.float32)
    has_next[bounds[1:][np.diff(bounds) > 0] - 1] = 0
    for first, last in _blocks(bounds):
        block = slice(bounds[first], bounds[last])
        rows = places[block]
        vectors = sentences.read_vectors(rows)
        # vectors * scales = l v of a sentence, so the product of two neighbours is q . (l1 v1 + l2 v2); window_scales
        # divides by the length of the sum.
        products = (vectors.astype(np.float32) @ vector) * sentences.scales[rows]
        products[:-1] += has_next[block][:-1] * products[1:]
        scores[block] = products * sentences.window_scales[rows]
    return scores


def _blocks(bounds: np.ndarray) -> list[tuple[int, int]]:
    """Return runs of text units (first, after the last) of about `_BLOCK_SENTENCES` sentences; none is split."""
    n_units = len(bounds) - 1
    ends = np.searchsorted(bounds, np.arange(_BLOCK_SENTENCES, bounds[-1] + _BLOCK_SENTENCES, _BLOCK_SENTENCES))
    stops = np.unique(np.r_[0, np.minimum(ends, n_units)]).tolist()
    return list(pairwise(stops))


TEXT_UNIT_VECTORS = "default-text_unit-text"
WINDOW_WEIGHT = 0.15
REPEAT = 0.95
"""Share of its score that a text unit keeps if its document has a better one."""
N_BY_WORDS = 100
"""Number of candidates by BM25."""
N_NAMED = 100
"""Most text units of documents that a question names, beside those that are found by words and vectors."""
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
    named = _units_of_named(index, question)
    ids = sorted({*by_words, *near, *named})
    if not ids:
        return []
    rows = index.snapshot.rows_of("text_units", ids)
    windows = score_best_windows(index.snapshot.sentences, embed_question(index.snapshot, question), rows)
    fused = fuse(np.array([by_words.get(unit_id, 0.0) for unit_id in ids]), windows)
    nearness = np.array([near.get(unit_id, 0.0) for unit_id in ids])
    order = np.lexsort((-nearness, -fused))  # ties stay in the order of ids
    scores = weigh_repeats(fused[order], index.documents_of_units[rows[order]])
    if named:
        scores = (scores + [named.get(ids[place], 0.0) for place in order]) / 2
    ranked = [(ids[order[i]], float(scores[i])) for i in np.argsort(-scores, kind="stable").tolist()]
    return [*ranked, *_follow(ranked, found_by_words, found_near)][:k]


def _units_of_named(index: IndexReader, question: str) -> dict[str, float]:
    """Return id -> weight of the first text units of the documents that a question names: they are read first."""
    documents = find_named_documents(index, question)
    if not documents:
        return {}
    of_unit = index.snapshot.table("text_units")["document_id"]
    rows = np.flatnonzero(pc.is_in(of_unit, value_set=pa.array(sorted(documents))).to_numpy(zero_copy_only=False))
    units = index.snapshot.take("text_units", rows[:N_NAMED], ["id", "document_id"])
    return {unit["id"]: documents[unit["document_id"]] for unit in units}


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
