"""Calls of the embedding model that a stage will make for known rows, counted with the vectors that are stored.

Keep out: rows that are not known yet, and prices (`estimates.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from graphrag_pipeline.identity import bucket_of, text_hash
from graphrag_pipeline.indexing.aggregation_report import choose_sample, count_calls_together, count_embedding_calls
from graphrag_pipeline.indexing.embeddings import embedded_texts
from graphrag_pipeline.settings.settings import Settings

if TYPE_CHECKING:
    from graphrag_pipeline.models.endpoints.openai_embedder import OpenAIEmbedder


@dataclass(frozen=True)
class CallsToEmbed:
    """Requests to send, texts whose vectors are stored, and tokens to send."""

    n_calls: int
    n_cached: int
    n_tokens: int


def count_calls_to_embed(
    stage: str, vector_table: str, rows: pa.Table, embedder: OpenAIEmbedder, settings: Settings
) -> CallsToEmbed:
    """Count the calls that embed the rows of a stage in an index run, with the samples that compare averaged vectors.

    An index run sends the samples of all buckets behind the text units, in the same call.

    Args:
        rows: of the contract table of `vector_table`; text units need `document_id`, since each bucket has a sample.
    """
    limits = settings.embedding_model
    text_of = {text_hash(text): text for text in embedded_texts(vector_table, rows)}
    missing = _not_stored(text_of, embedder)
    if stage == "text_unit_embeddings":
        sample = {text_hash(text): text for text in _sample(rows, settings)}
        calls = count_calls_together([*missing, *_not_stored(sample, embedder)], limits)
    else:
        calls = count_embedding_calls(missing, limits)
    return CallsToEmbed(calls.n_requests, len(text_of) - len(missing), calls.n_tokens)


def _sample(rows: pa.Table, settings: Settings) -> Iterator[str]:
    """Yield the texts of each bucket that are embedded to compare averaged vectors with those of whole texts."""
    buckets = [bucket_of(document_id, settings.storage.n_buckets) for document_id in rows["document_id"].to_pylist()]
    for bucket in sorted(set(buckets)):
        units = rows.filter(pa.array([other == bucket for other in buckets]))
        yield from choose_sample(units["text"].to_pylist(), settings)


def _not_stored(text_of: Mapping[str, str], embedder: OpenAIEmbedder) -> list[str]:
    stored = embedder.read_stored(text_of)
    return [text for key, text in text_of.items() if key not in stored and text.strip()]
