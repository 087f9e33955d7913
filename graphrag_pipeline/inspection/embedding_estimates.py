"""Calls of the embedding model that a stage will make for known rows, counted with the vectors that are stored.

Keep out: rows that are not known yet, and prices (`estimates.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from graphrag_pipeline.identity import bucket_of, text_hash
from graphrag_pipeline.indexing.aggregation_report import (
    choose_comparisons,
    count_calls_together,
    count_embedding_calls,
    texts_to_compare,
)
from graphrag_pipeline.indexing.embeddings import embedded_texts
from graphrag_pipeline.models.endpoints.openai_embedder import OpenAIEmbedder
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.text.tokens import count_tokens_each


@dataclass(frozen=True)
class CallsToEmbed:
    """Requests to send, texts whose vectors are stored, and tokens of the others."""

    n_calls: int
    n_cached: int
    n_tokens: int


def count_calls_to_embed(
    stage: str, vector_table: str, rows: pa.Table, embedder: OpenAIEmbedder, settings: Settings
) -> CallsToEmbed:
    """Count the calls that embed the rows of a stage in an index run, with the samples that compare averaged vectors.

    Args:
        rows: of the contract table of `vector_table`; text units need `document_id`, since each bucket has a sample.
    """
    limits = settings.embedding_model
    text_of = {text_hash(text): text for text in embedded_texts(vector_table, rows)}
    missing = _not_stored(text_of, embedder)
    count = count_calls_together if stage == "text_unit_embeddings" else count_embedding_calls
    n_calls, sent = count(missing, limits).n_requests, dict.fromkeys(missing)
    for texts in _samples(stage, rows, embedder, settings):
        more = [text for text in texts if text not in sent]
        n_calls += count_calls_together(more, limits).n_requests
        sent |= dict.fromkeys(more)
    n_tokens = sum(count_tokens_each(list(sent), settings.text_units.encoding))
    return CallsToEmbed(n_calls, len(text_of) - len(missing), n_tokens)


def _samples(stage: str, rows: pa.Table, embedder: OpenAIEmbedder, settings: Settings) -> Iterator[list[str]]:
    """Yield the texts of each bucket that are embedded to compare averaged vectors with those of whole texts."""
    if stage != "text_unit_embeddings":
        return
    buckets = [bucket_of(document_id, settings.storage.n_buckets) for document_id in rows["document_id"].to_pylist()]
    for bucket in sorted(set(buckets)):
        texts = rows.filter(pa.array([other == bucket for other in buckets]))["text"].to_pylist()
        comparisons = choose_comparisons(texts, settings.embedding_model, settings.embeddings.n_compared)
        yield _not_stored({text_hash(text): text for text in texts_to_compare(comparisons)}, embedder)


def _not_stored(text_of: Mapping[str, str], embedder: OpenAIEmbedder) -> list[str]:
    stored = embedder.read_stored(text_of)
    return [text for key, text in text_of.items() if key not in stored and text.strip()]
