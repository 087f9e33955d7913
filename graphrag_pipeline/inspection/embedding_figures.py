"""Figures on chunks and on averaged vectors of the present stage tables, as `status` shows them.

Vectors are read from the store; no request is sent. Keep out: computing the figures
(`indexing/aggregation_report.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from graphrag_pipeline.identity import text_hash
from graphrag_pipeline.indexing.aggregation_report import (
    WholeAndParts,
    choose_comparisons,
    compare_averages,
    count_calls_together,
    measure_aggregation,
    saved_percent,
    texts_to_compare,
)
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.text.counted import counted


def read_embedding_figures(root: Root) -> dict[str, Any]:
    """Return the figures by the keys of `status --json`: `aggregation` and `averaged_vectors`, None without any."""
    parts: list[tuple[pa.Table, pa.Table]] = []
    comparisons: list[WholeAndParts] = []
    for partition in STAGES["text_units"].partitions(root.settings):
        documents, units = (_read(root, table, partition) for table in ("documents", "text_units"))
        if documents is None or units is None:
            continue
        parts.append((documents.select(["id", "text", "chunks"]), units.select(["document_id", "text"])))
        if root.settings.embeddings.engine == "model":
            n_compared = root.settings.embeddings.n_compared
            comparisons += choose_comparisons(units["text"].to_pylist(), root.settings.embedding_model, n_compared)
    return {"aggregation": _sum_up(root, parts), "averaged_vectors": _summarize(root, comparisons, parts)}


def _read(root: Root, table: str, partition: str) -> pa.Table | None:
    head = root.tables.head(table, partition)
    return root.tables.read_head(head) if head else None


def _sum_up(root: Root, parts: Sequence[tuple[pa.Table, pa.Table]]) -> dict[str, Any] | None:
    if not parts:
        return None
    documents, units = _join(parts)
    figures = measure_aggregation(documents, units, root.settings.embedding_model)
    if figures is None:
        return None
    return {
        "documents": figures.n_documents,
        "chunks": figures.n_chunks,
        "text_units": figures.n_text_units,
        "text_units_saved_percent": saved_percent(figures.n_chunks, figures.n_text_units),
        "inputs_before": figures.before.n_inputs,
        "inputs_after": figures.after.n_inputs,
        "inputs_saved_percent": saved_percent(figures.before.n_inputs, figures.after.n_inputs),
        "requests_before": figures.before.n_requests,
        "requests_after": figures.after.n_requests,
    }


def _join(parts: Sequence[tuple[pa.Table, pa.Table]]) -> tuple[pa.Table, pa.Table]:
    documents, units = (pa.concat_tables(tables) for tables in zip(*parts, strict=True))
    return documents, units


def _summarize(
    root: Root, comparisons: Sequence[WholeAndParts], parts: Sequence[tuple[pa.Table, pa.Table]]
) -> dict[str, Any] | None:
    """Return the cosines of the comparison, and its calls beside those of the text units; None without a comparison."""
    if not comparisons:
        return None
    text_of = {text_hash(text): text for text in texts_to_compare(comparisons)}
    cosines = compare_averages(comparisons, root.models.embedder.read_stored(text_of), root.settings.embedding_model)
    if not cosines:
        return None
    texts = _join(parts)[1]["text"].to_pylist()
    limits = root.settings.embedding_model
    alone, sent = count_calls_together(texts, limits), count_calls_together([*texts, *text_of.values()], limits)
    return {
        "n_compared": len(cosines),
        "mean_cosine": round(float(np.mean(cosines)), 4),
        "least_cosine": round(min(cosines), 4),
        "inputs": sent.n_inputs - alone.n_inputs,
        "requests": sent.n_requests - alone.n_requests,
        "inputs_with_text_units": sent.n_inputs,
        "requests_with_text_units": sent.n_requests,
    }


def render_embedding_figures(figures: dict[str, Any], has_model: bool, is_halving: bool = False) -> list[str]:
    """Return the lines of `status`; none without figures.

    Args:
        is_halving: whether texts that the endpoint refuses are cut in two, with calls that the figures do not have.
    """
    lines = []
    aggregation, averaged = figures["aggregation"], figures["averaged_vectors"]
    if aggregation:
        sent = "" if has_model else " (with a model; the bundled embeddings need none)"
        lines.append(
            f"chunks: {aggregation['chunks']:,} chunks of {counted(aggregation['documents'], 'documents')} are "
            f"{aggregation['text_units']:,} text units ({_describe_saving(aggregation['text_units_saved_percent'])})"
        )
        lines.append(
            f"embedding calls for text units: {aggregation['inputs_before']:,} inputs in "
            f"{aggregation['requests_before']:,} requests before aggregation, {aggregation['inputs_after']:,} in "
            f"{aggregation['requests_after']:,} after "
            f"({_describe_saving(aggregation['inputs_saved_percent'])} inputs){sent}"
        )
        if has_model and is_halving:
            lines.append("calls for halves of refused texts come on top (`embedding_model.refused_texts`)")
    if averaged:
        lines.append(
            f"averaged vectors of split texts: cosine to the whole text's {averaged['mean_cosine']:.4f} on average, "
            f"{averaged['least_cosine']:.4f} at least ({averaged['n_compared']:,} texts cut on purpose)"
        )
        lines.append(
            f"embedding calls for this comparison: {averaged['inputs']:,} more inputs in {averaged['requests']:,} more "
            f"requests; with the text units {averaged['inputs_with_text_units']:,} inputs in "
            f"{averaged['requests_with_text_units']:,} requests"
        )
    return lines


def _describe_saving(percent: float) -> str:
    return f"{abs(percent):g} % {'more' if percent < 0 else 'fewer'}"
