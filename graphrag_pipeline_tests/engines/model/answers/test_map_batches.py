"""Batches of the map step: shuffled by a seed, packed by tokens; and the points that go into the final answer."""

from __future__ import annotations

import random

import numpy as np
import pytest

from graphrag_pipeline.engines.model.answers.map_batches import batch_reports, find_weights
from graphrag_pipeline.engines.model.answers.writing import list_points
from graphrag_pipeline.query import records
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.results import ReportRecord
from graphrag_pipeline.query.search.global_ import NO_REPORT, Point
from graphrag_pipeline.text.tokens import count_tokens_each

SMALL = 3


@pytest.fixture(scope="module")
def reports(carol: GraphIndex) -> tuple[ReportRecord, ...]:
    rows = np.arange(carol.snapshot.n_rows("community_reports"))
    return records.read_reports(carol, rows, np.zeros(len(rows)))


def test_reports_on_tiny_communities_are_shuffled_with_the_others(
    carol: GraphIndex, reports: tuple[ReportRecord, ...]
) -> None:
    batches = batch_reports(carol, reports, 8000, 86)
    n_small = [sum(report.size < SMALL for report in batch.reports) for batch in batches]
    assert sum(n_small[: len(batches) // 2]) > sum(n_small) / 4 and n_small[0] > 0
    expected = sorted(reports, key=lambda report: (-report.level, report.community))
    random.seed(86)
    random.shuffle(expected)
    ends = np.cumsum([len(batch.reports) for batch in batches])
    for batch, end in zip(batches, ends, strict=True):
        shuffled = expected[end - len(batch.reports) : end]
        assert {report.community for report in batch.reports} == {report.community for report in shuffled}


def test_batches_depend_on_the_seed_alone_and_keep_the_limit(
    carol: GraphIndex, reports: tuple[ReportRecord, ...]
) -> None:
    batches = batch_reports(carol, reports, 3000, 1)
    assert batches == batch_reports(carol, reports[::-1], 3000, 1) != batch_reports(carol, reports, 3000, 2)
    assert all(batch.n_tokens <= 3000 or len(batch.reports) == 1 for batch in batches)
    assert sorted(r.id for batch in batches for r in batch.reports) == sorted(report.id for report in reports)


def test_inside_a_batch_the_report_that_most_text_units_mention_comes_first(
    carol: GraphIndex, reports: tuple[ReportRecord, ...]
) -> None:
    weights = dict(zip((report.id for report in reports), find_weights(carol, reports), strict=True))
    assert max(weights.values()) == 1 and min(weights.values()) > 0
    for batch in batch_reports(carol, reports, 8000, 86):
        order = [(weights[report.id], report.rank) for report in batch.reports]
        assert order == sorted(order, reverse=True)
        assert f"(occurrence weight {order[0][0]:.2f}, rank {order[0][1]:g})" in batch.reports[0].title


def test_points_are_added_until_one_does_not_fit() -> None:
    long, short = "A point of many words. " * 20, "Short."
    points = [Point(NO_REPORT, "", text, score, batch) for batch, (text, score) in
              enumerate([(short, 90), (long, 80), (short, 70)])]  # fmt: skip
    texts = list_points(points, 10_000)
    assert texts[1].startswith("----Analyst 2----\nImportance Score: 80\nA point")
    costs = count_tokens_each(texts)
    assert list_points(points, sum(costs)) == texts and list_points(points, sum(costs) - 1) == texts[:2]
    assert list_points(points, sum(costs[:2]) - 1) == texts[:1], "the third would fit, but the second does not"
    assert list_points(points, 1) == texts[:1], "the best point is always read"
