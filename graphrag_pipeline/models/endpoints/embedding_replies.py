"""Vectors in the response body of an embeddings endpoint.

Keep out: sending, batches, storage.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

import numpy as np

from graphrag_pipeline.models.ports import ReplyFormatError


def read_vectors(body: object, n: int) -> list[np.ndarray]:
    """Return the n vectors of an embeddings response, each float32 (d,), in the order of the inputs.

    Raises:
        ReplyFormatError: the body does not hold n numbered vectors of finite numbers.
    """
    rows = body.get("data") if isinstance(body, Mapping) else None
    if not isinstance(rows, list) or len(rows) != n or not all(isinstance(row, Mapping) for row in rows):
        raise ReplyFormatError(f"the endpoint did not send {n} vectors: {str(body)[:120]!r}")
    indices = [row.get("index", place) for place, row in enumerate(rows)]
    if sorted(indices, key=str) != sorted(range(n), key=str):
        raise ReplyFormatError(f"the endpoint did not number its {n} vectors: {indices[:8]}")
    vectors = {index: _read_vector(row.get("embedding")) for index, row in zip(indices, rows, strict=True)}
    return [vectors[index] for index in range(n)]


def _read_vector(value: object) -> np.ndarray:
    try:
        if isinstance(value, str):
            vector = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
        else:
            with np.errstate(over="ignore"):  # infinity is checked below
                vector = np.asarray(value, dtype=np.float32)
    except (ValueError, TypeError, OverflowError):
        raise ReplyFormatError(f"not a vector: {str(value)[:80]!r}") from None
    if vector.ndim != 1 or not vector.size or not np.isfinite(vector).all():
        raise ReplyFormatError(f"not a vector of finite numbers: {str(value)[:80]!r}")
    return vector
