"""Batches of the map step of ours and of Microsoft GraphRAG at exact limits: the `batches` part of `parity.py`.

Both get the reports of one level of `graphrag_pipeline_tests/data/microsoft_christmas_carol`, shuffled by one seed. The
limit is the exact sum of tokens of the header and the first reports, then one token less. At the sum, the last of these
reports is in the first batch. With one token less, it begins the second. Our side asks no model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.engines.model.answers.points import HEADER, batch_reports
from graphrag_pipeline.interchange.graphrag_import import import_graphrag
from graphrag_pipeline.interchange.index_export import export_snapshot
from graphrag_pipeline.query import records
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.results import ReportRecord
from graphrag_pipeline.query.search.community_selection import rate_reports, select_global_context
from graphrag_pipeline.settings.settings import GlobalSearchSettings, Settings
from graphrag_pipeline.text import tokens
from graphrag_pipeline_tests.bench.parity import Comparison, Peer, compare
from graphrag_pipeline_tests.bench.parity_global import FINEST, Case, request_of
from graphrag_pipeline_tests.support.paths import MICROSOFT_INDEX

RECORDING = "batches"
N_TOGETHER = (2, 3, 5, 8)
"""Reports that the first batch holds at the exact limit."""


def make_exact_limits(index: GraphIndex) -> list[tuple[int, int]]:
    """Return pairs of a level and a limit in tokens: each exact limit, then one token less."""
    found = []
    for level, n in product(range(FINEST + 1), N_TOGETHER):
        alone = batch_reports(index, _read_level(index, level), 1, GlobalSearchSettings().seed)[:n]
        exact = sum(batch.n_tokens for batch in alone) - (n - 1) * tokens.count_tokens(HEADER)
        found += [(level, exact), (level, exact - 1)]
    return found


def batch_level(index: GraphIndex, level: int, limit: int) -> list[list[str]]:
    """Return our batches of the reports down to a level, as communities in order."""
    return _batch(index, _read_level(index, level), limit)


def batch_communities(index: GraphIndex, communities: Iterable[str], limit: int) -> list[list[str]]:
    """Return our batches of the reports on some communities, as communities in order."""
    wanted = [int(community) for community in communities]
    rows = np.flatnonzero(np.isin(index.column("community_reports", "community"), wanted))
    return _batch(index, records.read_reports(index, rows, np.zeros(len(rows))), limit)


def _read_level(index: GraphIndex, level: int) -> tuple[ReportRecord, ...]:
    return select_global_context(index, rate_reports(index, "", _settings_of(level))).reports


def _settings_of(level: int, limit: int | None = None) -> GlobalSearchSettings:
    given = {} if limit is None else {"max_context_tokens": limit}
    return GlobalSearchSettings(selection="static", level=level, all_levels=True, **given)


def _batch(index: GraphIndex, reports: tuple[ReportRecord, ...], limit: int) -> list[list[str]]:
    batches = batch_reports(index, reports, limit, GlobalSearchSettings().seed)
    return [[str(report.community) for report in batch.reports] for batch in batches]


def compare_with_peer(peer: Peer, folder: Path, n_questions: int) -> list[Comparison]:
    """Compare the batches at the first limits."""
    import_graphrag(MICROSOFT_INDEX, folder / "root", load_static_embeddings(), Settings())
    with GraphIndex.open(folder / "root") as index:
        export_snapshot(index.snapshot, folder / "exported", "graphrag")
        limits = make_exact_limits(index)[:n_questions]
        theirs = [
            {"level": level, "limit": limit, "batches": batches}
            for (level, limit), batches in zip(limits, _run_peer(peer, folder / "exported", limits), strict=True)
        ]
        peer.record(RECORDING, theirs)
        return [compare_limits(index, theirs)]


def _run_peer(peer: Peer, exported: Path, limits: list[tuple[int, int]]) -> list[list[list[str]]]:
    cases = [Case(place, _settings_of(*limits[place]), {}, {}) for place in range(len(limits))]
    request = {
        "ranks": str(tokens._RANKS),
        "tables": str(exported),
        "cases": [request_of(case) for case in cases],
    }
    return [found["batches"] for found in peer.run("peer_global.py", json.loads(json.dumps(request)))]


def compare_limits(index: GraphIndex, theirs: list[dict[str, Any]]) -> Comparison:
    """Compare our batches with the peer's, each with the level and the limit it was made for."""
    return compare(
        "global: batches at exact limits",
        [f"level {found['level']}, {found['limit']} tokens" for found in theirs],
        [batch_level(index, found["level"], found["limit"]) for found in theirs],
        [found["batches"] for found in theirs],
    )
