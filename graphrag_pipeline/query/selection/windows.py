"""Two-sentence windows of text units: similarity of the best one to a question, and its place in the text.

    score of a window = cos(q, l1 v1 + l2 v2)

q is the question's vector, v1 and v2 are the vectors of two neighbouring sentences of a text unit, and l1 and l2 their
lengths in characters. A text unit of one sentence has that sentence as its window.

Vectors are the bundled static ones (`indexing/sentence_embeddings.py`), also if another model embeds text units. The
products use the memory-mapped int8 rows, a block at a time, so no window is stored. Keep out: the choice of text units
and the fusion of scores (`hybrid_ranking.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.ports import load_static_embedder
from graphrag_pipeline.query.question import is_latin
from graphrag_pipeline.storage.arrays import Sentences, expand_rows

if TYPE_CHECKING:
    from graphrag_pipeline.storage.snapshots import Snapshot

_BLOCK_SENTENCES = 1_024
"""Sentences per block: 1 MB of float32 rows stays in the processor's cache, and BLAS starts no threads for it."""


@dataclass(frozen=True)
class BestWindows:
    """The best window of each of n text units.

    Attributes:
        scores: cosine to the question, float32 (n,); 0 if the question or all sentences have no known word.
        starts, ends: character offsets of the window inside the text unit's text, int32 (n,). They are equal for a text
            unit without sentences.
    """

    scores: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


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


def find_best_windows(sentences: Sentences, vector: np.ndarray, rows: np.ndarray) -> BestWindows:
    """Return the best window of each of some text units.

    Args:
        vector: of the question, from `embed_question`.
        rows: row numbers of text units, int (n,).
    """
    positions, places = expand_rows(sentences.indptr, rows)
    bounds = np.searchsorted(positions, np.arange(len(rows) + 1))
    return _pick_best(sentences, _score_windows(sentences, vector, bounds, places), bounds, places)


def find_all_best_windows(sentences: Sentences, vector: np.ndarray) -> BestWindows:
    """Return the best window of every text unit of the snapshot, in row order."""
    bounds = np.asarray(sentences.indptr)
    return _pick_best(sentences, _score_windows(sentences, vector, bounds), bounds, np.arange(bounds[-1]))


def _score_windows(
    sentences: Sentences, vector: np.ndarray, bounds: np.ndarray, places: np.ndarray | None = None
) -> np.ndarray:
    """Return the cosine of the window that each sentence starts, float32 (bounds[-1],).

    The last of several sentences of a text unit starts no window: 0.

    Args:
        bounds: sentences `bounds[i]:bounds[i + 1]` are those of the i-th text unit.
        places: rows of the sentences in the arrays; None if sentence i is row i.
    """
    scores = np.zeros(bounds[-1], dtype=np.float32)
    # has_next is 0 at the last sentence of each text unit, so that no window reaches into the next text unit.
    has_next = np.ones(len(scores), dtype=np.float32)
    has_next[bounds[1:][np.diff(bounds) > 0] - 1] = 0
    for first, last in _blocks(bounds):
        block = slice(bounds[first], bounds[last])
        rows = block if places is None else places[block]
        vectors = sentences.vectors[block] if places is None else sentences.read_vectors(places[block])
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


def _pick_best(sentences: Sentences, scores: np.ndarray, bounds: np.ndarray, places: np.ndarray) -> BestWindows:
    """Return the first of the best windows of each text unit; arguments as of `_score_windows`."""
    n_units = len(bounds) - 1
    best = np.zeros(n_units, dtype=np.float32)
    starts, ends = np.zeros(n_units, dtype=np.int32), np.zeros(n_units, dtype=np.int32)
    units = np.flatnonzero(np.diff(bounds) > 0)
    if len(units):
        best[units] = np.maximum.reduceat(scores, bounds[units])
        # The first position at or after a text unit's start whose score is that text unit's maximum.
        is_best = np.flatnonzero(scores == np.repeat(best, np.diff(bounds)))
        chosen = is_best[np.searchsorted(is_best, bounds[units])]
        following = np.minimum(chosen + 1, bounds[units + 1] - 1)
        starts[units], ends[units] = sentences.starts[places[chosen]], sentences.ends[places[following]]
    return BestWindows(best, starts, ends)
