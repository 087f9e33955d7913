"""Figures on chunk aggregation and averaged vectors: text units, embedding calls, and what averaging loses.

"Before" means one text unit per chunk. Calls are counted by the rules by which texts are sent (`embeddings.py`,
`models/pieces.py`, and one pool over all buckets for text units), so they are those that an index from scratch makes.
Requests have a meaning only for texts that are sent together, so they are not added up. What averaging
loses is measured with the configured model: texts that fit are cut on purpose, and the mean of the parts is compared
with the vector of the whole.
Keep out: the aggregation, requests, and stores.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.identity import text_hash
from graphrag_pipeline.indexing.embeddings import BATCH_TEXTS, embedded_unit_texts
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
from graphrag_pipeline.settings.settings import Settings

MIN_COMPARED = 16
"""Fewest tokens of a text that is cut on purpose."""


@dataclass(frozen=True)
class EmbeddingCalls:
    """Calls that embed some texts: pieces that are sent, requests that they are sent in, and their tokens."""

    n_inputs: int
    n_requests: int
    n_tokens: int


@dataclass(frozen=True)
class AggregationFigures:
    """Figures on documents. Calls do not add up over partitions: equal texts are sent once, and requests are shared.

    Attributes:
        n_documents, n_chunks: documents that came in chunks, and their chunks.
        n_text_units: text units of these documents.
        before, after: calls that embed all text units, with one text unit per chunk and as they are.
    """

    n_documents: int
    n_chunks: int
    n_text_units: int
    before: EmbeddingCalls
    after: EmbeddingCalls


def measure_aggregation(
    documents: pa.Table, text_units: pa.Table, limits: EmbeddingModelSettings
) -> AggregationFigures | None:
    """Compute the figures of some documents; None if none of them came in chunks.

    Args:
        documents: columns `id`, `text` and `chunks` of `tables.DOCUMENTS`.
        text_units: columns `document_id` and `text` of `tables.TEXT_UNITS`, of the same documents.
        limits: limits of the embedding model whose calls are counted.
    """
    chunked = documents.filter(pc.is_valid(documents["chunks"]))
    if not chunked.num_rows:
        return None
    is_chunked = pc.is_in(text_units["document_id"], chunked["id"].combine_chunks())
    return AggregationFigures(
        chunked.num_rows,
        pc.sum(pc.list_value_length(chunked["chunks"])).as_py(),
        pc.sum(is_chunked).as_py() or 0,
        count_calls_together(_texts_before(documents, text_units), limits),
        count_calls_together(embedded_unit_texts(text_units), limits),
    )


def _texts_before(documents: pa.Table, text_units: pa.Table) -> Iterator[str]:
    """Yield each chunk of chunked documents and the text units of the others, in the order of the documents."""
    units: dict[str, list[str]] = {}
    for document, text in zip(text_units["document_id"].to_pylist(), embedded_unit_texts(text_units), strict=True):
        units.setdefault(document, []).append(text)
    for row in documents.select(["id", "text", "chunks"]).to_pylist():
        if row["chunks"] is None:
            yield from units.get(row["id"], ())
        else:
            yield from (row["text"][chunk["start"] : chunk["end"]] for chunk in row["chunks"])


def describe_aggregation(figures: AggregationFigures | None) -> dict[str, Any]:
    """Return the figures of one bucket by description; {} without figures. Requests hold texts of all buckets."""
    if figures is None:
        return {}
    return {
        "documents in chunks": figures.n_documents,
        "text units before aggregation": figures.n_chunks,
        "text units after aggregation": figures.n_text_units,
        "text units saved, %": saved_percent(figures.n_chunks, figures.n_text_units),
        "distinct embedding inputs of this bucket before aggregation": figures.before.n_inputs,
        "distinct embedding inputs of this bucket after aggregation": figures.after.n_inputs,
        "embedding inputs saved, %": saved_percent(figures.before.n_inputs, figures.after.n_inputs),
    }


def saved_percent(before: int, after: int) -> float:
    """Return the share that is saved, in percent; negative if there is more than before."""
    return round(100 * (1 - after / before), 1) if before else 0.0


def count_embedding_calls(texts: Sequence[str], limits: EmbeddingModelSettings) -> EmbeddingCalls:
    """Count the calls of `embed_texts` for texts of which no vector is stored: equal and blank ones are not sent."""
    distinct = sorted(set(texts), key=text_hash)
    batches = [distinct[start : start + BATCH_TEXTS] for start in range(0, len(distinct), BATCH_TEXTS)]
    counts = [count_calls_together(batch, limits) for batch in batches]
    totals = (sum(getattr(count, name) for count in counts) for name in ("n_inputs", "n_requests", "n_tokens"))
    return EmbeddingCalls(*totals)


def count_calls_together(texts: Iterable[str], limits: EmbeddingModelSettings) -> EmbeddingCalls:
    """Count the calls for texts that the embedder gets at once, in this order, as an index run sends text units."""
    limit = piece_limit(limits)
    distinct = dict.fromkeys(text for text in texts if text.strip())
    pieces = list(dict.fromkeys(piece for text in distinct for piece in pieces_to_send(text, limit)))
    counts = [piece.n_tokens + limit.n_prefix for piece in pieces]
    batches = pack_batches(counts, limits.batch_size, limits.batch_max_tokens_per_request)
    return EmbeddingCalls(len(counts), len(batches), sum(counts))


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
    """Return the distinct texts whose vectors `compare_averages` needs.

    They are sent with the texts themselves: the first piece of a text that is cut is then sent once, for both.
    """
    texts = [text for one in comparisons for text in (one.whole, *(part.text for part in one.parts))]
    return list(dict.fromkeys(texts))


def choose_sample(texts: Sequence[str], settings: Settings) -> list[str]:
    """Return the texts that a bucket's comparisons need, under the settings; see `choose_comparisons`."""
    return texts_to_compare(choose_comparisons(texts, settings.embedding_model, settings.embeddings.n_compared))


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
            average = average_pieces(known[1:], one.parts)
            cosines.append(float(known[0] @ average))
    return cosines


def describe_averages(cosines: Sequence[float], n_inputs: int) -> dict[str, Any]:
    """Return the number, the mean and the least of the cosines by description; {} without any.

    Args:
        n_inputs: that the comparison sends beside those of the text units.
    """
    if not cosines:
        return {}
    return {
        "averaged vectors compared": len(cosines),
        "further embedding inputs to compare them": n_inputs,
        "cosine of averaged vectors to the whole text's, mean": round(float(np.mean(cosines)), 4),
        "cosine of averaged vectors to the whole text's, least": round(min(cosines), 4),
    }


def _is_cut(text: str, limit: PieceLimit) -> bool:
    is_long = len(text.encode(errors="replace")) > limit.max_tokens  # a token has at least one byte
    return is_long and len(pieces_to_send(text, limit)) > 1
