"""Batches of community reports for the map step of global search, shuffled and packed as Microsoft GraphRAG does.

The order before the shuffle is that of the reports table: finest level first, then by community. Python's random
generator shuffles them with the seed, so relevant reports are spread over the batches. Batches are cut by the tokens of
Microsoft GraphRAG's table row: community number, title, occurrence weight, content, rank. Inside a batch the reports
with the highest weight, then rank, come first. Keep out: requests and replies (`points.py`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from graphrag_pipeline.query.context import pack_batches
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.results import ReportRecord
from graphrag_pipeline.text.tokens import count_tokens_each

HEADER = "-----Reports-----\nid|title|occurrence weight|content|rank\n"


@dataclass(frozen=True)
class ReportBatch:
    """The reports of one call, in order, with weight and rank in their titles; `n_tokens` with the header."""

    reports: tuple[ReportRecord, ...]
    n_tokens: int


def batch_reports(index: IndexReader, reports: Sequence[ReportRecord], max_tokens: int, seed: int) -> list[ReportBatch]:
    """Shuffle reports and cut them into batches of at most `max_tokens` (see the module); a longer report is alone."""
    order = sorted(reports, key=lambda report: (-report.level, report.community))
    random.Random(seed).shuffle(order)
    weights = find_weights(index, order)
    rows = [
        f"{report.community}|{report.title}|{weight}|{report.content}|{report.rank}\n"
        for report, weight in zip(order, weights, strict=True)
    ]
    [header, *costs] = count_tokens_each([HEADER, *rows])
    batches = []
    for batch in pack_batches(costs, max_tokens, header):
        best_first = sorted(batch, key=lambda i: (-weights[i], -order[i].rank))
        shown = tuple(_show_weight(order[i], weights[i]) for i in best_first)
        batches.append(ReportBatch(shown, header + sum(costs[i] for i in batch)))
    return batches


def find_weights(index: IndexReader, reports: Sequence[ReportRecord]) -> list[float]:
    """Return the share of text units that mention an entity of a report's community, 0-1; the largest report has 1."""
    rows = index.rows_of_numbers("communities", "community", (report.community for report in reports))
    counts = []
    for community in index.snapshot.take("communities", rows, ["entity_ids"]):
        entities = index.snapshot.rows_of("entities", list(community["entity_ids"]))
        units = index.snapshot.adjacency.of_all("entity_text_units", entities[entities >= 0])[1]
        counts.append(len(np.unique(units)))
    largest = max(counts, default=0) or 1
    return [count / largest for count in counts]


def _show_weight(report: ReportRecord, weight: float) -> ReportRecord:
    return replace(report, title=f"{report.title} (occurrence weight {weight:.2f}, rank {report.rank:g})")
