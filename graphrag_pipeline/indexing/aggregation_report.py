"""Figures on chunk aggregation: text units and embedding calls before and after, and the loss by averaged vectors.

"Before" means one text unit per chunk. A text over `batch_max_tokens` is embedded in pieces whose vectors are averaged
(`models/pieces.py`). The figures include the cosine between the average and the pieces. Keep out: the aggregation.
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
"""Longest text that is compared uncut; the model's own limit counts if it is lower. It fits a limit of 512 tokens."""


def report_aggregation(
    documents: pa.Table, text_units: pa.Table, limits: EmbeddingModelSettings, embedder: Embedder, encoding: str
) -> dict[str, Any]:
    """Compute figures on the documents that came in chunks.

    Args:
        documents, text_units: `tables.DOCUMENTS` and `tables.TEXT_UNITS` of these documents.
        limits: limits of the embedding model whose calls are counted.
        embedder: makes the vectors that are compared; it should not cost money.

    Returns:
        Description -> figure; {} without chunked documents.
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
    """Count the requests that embed these texts within the limits of a model."""
    pieces = [piece for text in texts for piece in split_to_pieces(text, limits.batch_max_tokens, encoding)]
    counts = [piece.n_tokens for piece in pieces]
    return len(pack_batches(counts, limits.batch_size, limits.batch_max_tokens_per_request))


def compare_averages(texts: Sequence[str], embedder: Embedder, encoding: str, max_tokens: int) -> np.ndarray:
    """Compare the averaged vector of each split text with the vectors of its pieces.

    Returns:
        (n,) float64 for the n texts of several pieces: mean cosine of the average to the pieces.
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
