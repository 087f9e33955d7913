"""Figures on chunk aggregation and averaged vectors: text units, embedding calls, and what averaging loses.

"Before" means one text unit per chunk. Calls are counted by the rules by which texts are sent (`embeddings.py`,
`models/pieces.py`), so they are those that an index from scratch makes. What averaging loses is measured with the
configured model: texts that fit are cut on purpose, and the mean of the parts is compared with the vector of the whole.
Keep out: the aggregation, requests, and stores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.identity import text_hash
from graphrag_pipeline.indexing.embeddings import BATCH_TEXTS
from graphrag_pipeline.models.pieces import (
    PieceLimit,
    TextPiece,
    average_pieces,
    pack_batches,
    piece_limit,
    pieces_to_send,
    split_to_pieces,
)
from graphrag_pipeline.settings.models import EmbeddingModelSettings

MIN_COMPARED = 16
"""Fewest tokens of a text that is cut on purpose."""


@dataclass(frozen=True)
class EmbeddingCalls:
    """Calls that embed some texts: pieces that are sent, and requests that they are sent in."""

    n_inputs: int
    n_requests: int


@dataclass(frozen=True)
class AggregationFigures:
    """Figures on the documents of one partition; they add up over partitions.

    Attributes:
        n_documents, n_chunks: documents that came in chunks, and their chunks.
        n_text_units: text units of these documents.
        before, after: calls that embed all text units of the partition, with one text unit per chunk and as they are.
    """

    n_documents: int
    n_chunks: int
    n_text_units: int
    before: EmbeddingCalls
    after: EmbeddingCalls


def measure_aggregation(
    documents: pa.Table, text_units: pa.Table, limits: EmbeddingModelSettings
) -> AggregationFigures | None:
    """Compute the figures of a partition; None without chunked documents.

    Args:
        documents, text_units: `tables.DOCUMENTS` and `tables.TEXT_UNITS` of all documents of the partition.
        limits: limits of the embedding model whose calls are counted.
    """
    chunked = documents.filter(pc.is_valid(documents["chunks"]))
    if not chunked.num_rows:
        return None
    rows = chunked.select(["text", "chunks"]).to_pylist()
    chunks = [row["text"][chunk["start"] : chunk["end"]] for row in rows for chunk in row["chunks"]]
    is_chunked = pc.is_in(text_units["document_id"], chunked["id"].combine_chunks())
    others = text_units.filter(pc.invert(is_chunked))["text"].to_pylist()
    return AggregationFigures(
        chunked.num_rows,
        len(chunks),
        pc.sum(is_chunked).as_py() or 0,
        count_embedding_calls(others + chunks, limits),
        count_embedding_calls(text_units["text"].to_pylist(), limits),
    )


def describe_aggregation(figures: AggregationFigures | None) -> dict[str, Any]:
    """Return the figures by description; {} without figures."""
    if figures is None:
        return {}
    return {
        "documents in chunks": figures.n_documents,
        "text units before aggregation": figures.n_chunks,
        "text units after aggregation": figures.n_text_units,
        "text units saved, %": saved_percent(figures.n_chunks, figures.n_text_units),
        "embedding inputs before aggregation": figures.before.n_inputs,
        "embedding inputs after aggregation": figures.after.n_inputs,
        "embedding inputs saved, %": saved_percent(figures.before.n_inputs, figures.after.n_inputs),
        "embedding requests before aggregation": figures.before.n_requests,
        "embedding requests after aggregation": figures.after.n_requests,
    }


def saved_percent(before: int, after: int) -> float:
    """Return the share that is saved, in percent; negative if there is more than before."""
    return round(100 * (1 - after / before), 1) if before else 0.0


def count_embedding_calls(texts: Sequence[str], limits: EmbeddingModelSettings) -> EmbeddingCalls:
    """Count the calls of `embed_texts` for texts of which no vector is stored: equal and blank ones are not sent."""
    limit = piece_limit(limits)
    distinct = sorted({text for text in texts if text.strip()}, key=text_hash)
    n_inputs = n_requests = 0
    for start in range(0, len(distinct), BATCH_TEXTS):
        batch = distinct[start : start + BATCH_TEXTS]
        counts = [piece.n_tokens for text in batch for piece in pieces_to_send(text, limit)]
        n_inputs += len(counts)
        n_requests += len(pack_batches(counts, limits.batch_size, limits.batch_max_tokens_per_request))
    return EmbeddingCalls(n_inputs, n_requests)


# ----------------------------------------------------------------------------------------------------- averaged vectors


@dataclass(frozen=True)
class WholeAndParts:
    """A text that fits the model, and the parts that it is cut into on purpose."""

    whole: str
    parts: tuple[TextPiece, ...]


def choose_comparisons(texts: Sequence[str], limits: EmbeddingModelSettings, n_compared: int) -> list[WholeAndParts]:
    """Choose texts to compare, by the lowest hash of their content; [] if the model cuts none of the texts.

    A text that does not fit is represented by its first piece. It is cut into as many parts as the text has pieces,
    two at least.
    """
    limit, chosen = piece_limit(limits), list[WholeAndParts]()
    if not n_compared or not any(_is_cut(text, limit) for text in texts):
        return chosen
    for text in sorted(set(texts), key=text_hash):
        pieces = pieces_to_send(text, limit)
        if len(chosen) < n_compared and pieces and pieces[0].n_tokens >= MIN_COMPARED:
            most = math.ceil(pieces[0].n_tokens / max(2, len(pieces)))
            parts = split_to_pieces(pieces[0].text, most, limit.encoding)
            chosen += [WholeAndParts(pieces[0].text, tuple(parts))] if len(parts) > 1 else []
        if len(chosen) == n_compared:
            break
    return chosen


def texts_to_compare(comparisons: Sequence[WholeAndParts]) -> list[str]:
    """Return the distinct texts whose vectors `compare_averages` needs."""
    texts = [text for one in comparisons for text in (one.whole, *(part.text for part in one.parts))]
    return list(dict.fromkeys(texts))


def compare_averages(
    comparisons: Sequence[WholeAndParts], vectors: Mapping[str, np.ndarray], limits: EmbeddingModelSettings
) -> list[float]:
    """Return the cosine of the averaged vector to that of the whole, for each text with all its vectors.

    Args:
        vectors: by the hash of the text.
    """
    cosines = []
    for one in comparisons:
        found = [vectors.get(text_hash(text)) for text in (one.whole, *(part.text for part in one.parts))]
        known = [vector for vector in found if vector is not None and vector.any()]
        if len(known) == len(found):
            average = average_pieces(known[1:], one.parts, limits.averaging == "by_tokens")
            cosines.append(float(known[0] @ average))
    return cosines


def describe_averages(cosines: Sequence[float]) -> dict[str, Any]:
    """Return the number, the mean and the least of the cosines by description; {} without any."""
    if not cosines:
        return {}
    return {
        "averaged vectors compared": len(cosines),
        "cosine of averaged vectors to the whole text's, mean": round(float(np.mean(cosines)), 4),
        "cosine of averaged vectors to the whole text's, least": round(min(cosines), 4),
    }


def _is_cut(text: str, limit: PieceLimit) -> bool:
    is_long = len(text.encode(errors="replace")) > limit.max_tokens  # a token has at least one byte
    return is_long and len(pieces_to_send(text, limit)) > 1
