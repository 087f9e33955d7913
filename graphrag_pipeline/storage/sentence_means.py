"""Mean vectors of text units, computed from their sentences at first use and kept up to a number of bytes.

Reading and averaging the sentences of 128 text units takes 1.5 ms; reading their means takes 0.05 ms. Keep out: which
text units are compared.
"""

from __future__ import annotations

import itertools
import threading

import numpy as np

from graphrag_pipeline.storage.arrays import Sentences, expand_rows

MAX_BYTES = 64_000_000
"""Memory for the means of a snapshot: 62,500 text units at 256 dimensions."""


class SentenceMeans:
    """The mean vector of each text unit's sentences, weighted by their lengths in characters.

    A text unit has one place, which it may share with others if not all fit; the last one read is kept there. Safe to
    use from several threads.

    Args:
        max_bytes: of the vectors that are kept; at least one is.
    """

    def __init__(self, sentences: Sentences, max_bytes: int = MAX_BYTES) -> None:
        self._sentences = sentences
        dimensions = sentences.vectors.shape[1]
        n_places = max(min(len(sentences.indptr) - 1, max_bytes // (4 * dimensions)), 1)
        self._rows = np.full(n_places, -1, dtype=np.int64)
        self._vectors = np.empty((n_places, dimensions), dtype=np.float32)  # memory is taken where rows are written
        self._lock = threading.Lock()

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Return the means of some text units.

        Args:
            rows: row numbers of text units, int (n,).

        Returns:
            Unit vectors, float32 (n, dimensions); zeros for a text unit without known words.
        """
        places = rows % len(self._rows)
        with self._lock:
            is_known = self._rows[places] == rows
            found = self._vectors.take(places, axis=0)
        missing = np.flatnonzero(~is_known)
        if len(missing):
            found[missing] = compute_means(self._sentences, rows[missing])
            self._keep(rows[missing], found[missing])
        return found

    def _keep(self, rows: np.ndarray, vectors: np.ndarray) -> None:
        places, first = np.unique(rows % len(self._rows), return_index=True)
        with self._lock:
            self._rows[places] = rows[first]
            self._vectors[places] = vectors[first]


def compute_means(sentences: Sentences, rows: np.ndarray) -> np.ndarray:
    """Return the means of some text units, as `SentenceMeans.read` does."""
    sums = np.zeros((len(rows), sentences.vectors.shape[1]), dtype=np.float32)
    positions, places = expand_rows(sentences.indptr, rows)
    scales, vectors = sentences.scales[places], sentences.read_vectors(places).astype(np.float32)
    bounds = np.searchsorted(positions, np.arange(len(rows) + 1)).tolist()
    # A product per text unit is faster than one `reduceat` over all.
    for place, (start, end) in enumerate(itertools.pairwise(bounds)):
        np.dot(scales[start:end], vectors[start:end], out=sums[place])
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    means: np.ndarray = sums / np.where(lengths > 0, lengths, 1)
    return means
