"""What combining chunks saved: text units and embedding calls before and after, and what averaging vectors costs.

"Before" is one text unit a chunk. Texts over `batch_max_tokens` are embedded in pieces whose vectors are averaged
(`models/pieces.py`): the report says how near the average is to them. Keep out: the combining itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.models.pieces import TextPiece, average_vectors, pack_batches, split_to_pieces
from graphrag_pipeline.models.ports import Embedder
from graphrag_pipeline.settings.models import EmbeddingModelSettings
from graphrag_pipeline.text.tokens import count_tokens_each

MAX_TOKENS = 450
"""A text over it, or over the model's own limit if that is less, is cut to compare vectors: it fits a limit of 512."""


def report_aggregation(
    documents: pa.Table, text_units: pa.Table, limits: EmbeddingModelSettings, embedder: Embedder, encoding: str
) -> dict[str, Any]:
    """Numbers about the documents that came in chunks, by what they are in words; {} if none did.

    Args:
        documents: `tables.DOCUMENTS`; `text_units`: theirs.
        limits: of the embedding model, whose calls are counted.
        embedder: makes the vectors that are compared: a free one.
    """
    chunked = documents.filter(pc.is_valid(documents["chunks"]))
    if not chunked.num_rows:
        return {}
    chunks = [row["text"][chunk["start"] : chunk["end"]] for row in chunked.to_pylist() for chunk in row["chunks"]]
    units = text_units.filter(pc.is_in(text_units["document_id"], chunked["id"].combine_chunks()))["text"].to_pylist()
    max_tokens = min(MAX_TOKENS, limits.batch_max_tokens)
    nearness = compare_averages(units, embedder, encoding, max_tokens)
    return {
        "documents in chunks": chunked.num_rows,
        "text units before aggregation": len(chunks),
        "text units after aggregation": len(units),
        "text units saved, %": round(100 * (1 - len(units) / len(chunks)), 1),
        "embedding calls before aggregation": count_embedding_calls(chunks, limits, encoding),
        "embedding calls after aggregation": count_embedding_calls(units, limits, encoding),
        f"text units split at {max_tokens} tokens": len(nearness),
        **_summary("cosine of averaged vectors to their pieces'", nearness),
    }


def count_embedding_calls(texts: Sequence[str], limits: EmbeddingModelSettings, encoding: str) -> int:
    """Requests that embed these texts, each one and its batches within the limits of a model."""
    pieces = [piece for text in texts for piece in split_to_pieces(text, limits.batch_max_tokens, encoding)]
    counts = [piece.n_tokens for piece in pieces]
    return len(pack_batches(counts, limits.batch_size, limits.batch_max_tokens_per_request))


def compare_averages(texts: Sequence[str], embedder: Embedder, encoding: str, max_tokens: int) -> np.ndarray:
    """How near the averaged vector of each text that is split is to the vectors of its pieces.

    Returns:
        float64, one per text of several pieces: the mean cosine of its vector to those of its pieces.
    """
    long = [text for text, n in zip(texts, count_tokens_each(texts, encoding), strict=True) if n > max_tokens]
    split = [pieces for text in long if len(pieces := split_to_pieces(text, max_tokens, encoding)) > 1]
    return np.array([_nearness(pieces, embedder) for pieces in split])


def _nearness(pieces: Sequence[TextPiece], embedder: Embedder) -> float:
    vectors = embedder.embed([piece.text for piece in pieces])
    average = average_vectors(list(vectors), [piece.n_tokens for piece in pieces])
    return float(np.mean(vectors @ average))


def _summary(name: str, values: np.ndarray) -> dict[str, float]:
    if not len(values):
        return {}
    return {f"{name}, mean": round(float(values.mean()), 4), f"{name}, least": round(float(values.min()), 4)}
