"""An embedder small enough to reason about: words hashed into 64 dimensions."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

import numpy as np

from graphrag_pipeline.models.ports import Failure


class HashingEmbeddings:
    """Vectors of word counts by hash, of length 1; counts the embedded texts."""

    dimensions = 64
    fingerprint = "test:hashing:64"

    def __init__(self) -> None:
        self.n_texts = 0

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.n_texts += len(texts)
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, zlib.crc32(word.strip(".,!?\"'").encode()) % self.dimensions] += 1
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)

    def try_embed(
        self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None
    ) -> tuple[np.ndarray, list[Failure]]:
        return self.embed(texts), []
