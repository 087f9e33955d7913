"""Calls of the embedding model that a stage will make for known rows, counted with the vectors that are stored.

Keep out: rows that are not known yet, and prices (`estimates.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from graphrag_pipeline.identity import bucket_of, text_hash
from graphrag_pipeline.indexing.aggregation_report import choose_comparisons, count_embedding_calls, texts_to_compare
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
    """Count the calls that embed the rows of a stage, with the sample that compares averaged vectors.

    Args:
        rows: of the contract table of `vector_table`; text units need `document_id`, since each bucket is one run.
    """
    n_calls = n_cached = n_tokens = 0
    for part in _runs(stage, rows, settings.storage.n_buckets):
        text_of = {text_hash(text): text for text in embedded_texts(vector_table, part)}
        missing = _not_stored(text_of, embedder)
        compared = _texts_to_compare(stage, list(text_of.values()), missing, embedder, settings)
        counts = [count_embedding_calls(texts, settings.embedding_model) for texts in (missing, compared)]
        n_calls += sum(count.n_requests for count in counts)
        n_cached += len(text_of) - len(missing)
        n_tokens += sum(count_tokens_each(missing + compared, settings.text_units.encoding))
    return CallsToEmbed(n_calls, n_cached, n_tokens)


def _runs(stage: str, rows: pa.Table, n_buckets: int) -> Iterator[pa.Table]:
    """Yield the rows of each run of a stage."""
    if stage != "text_unit_embeddings":
        yield rows
        return
    buckets = [bucket_of(document_id, n_buckets) for document_id in rows["document_id"].to_pylist()]
    for bucket in sorted(set(buckets)):
        yield rows.filter(pa.array([other == bucket for other in buckets]))


def _not_stored(text_of: Mapping[str, str], embedder: OpenAIEmbedder) -> list[str]:
    stored = embedder.read_stored(text_of)
    return [text for key, text in text_of.items() if key not in stored and text.strip()]


def _texts_to_compare(
    stage: str, texts: Sequence[str], missing: Sequence[str], embedder: OpenAIEmbedder, settings: Settings
) -> list[str]:
    """Return the texts that are embedded only to compare averaged vectors with those of whole texts."""
    if stage != "text_unit_embeddings":
        return []
    comparisons = choose_comparisons(texts, settings.embedding_model, settings.embeddings.n_compared)
    text_of = {text_hash(text): text for text in texts_to_compare(comparisons)}
    return [text for text in _not_stored(text_of, embedder) if text not in set(missing)]
