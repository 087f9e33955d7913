"""Global search against recorded outputs of Microsoft GraphRAG 3.3.0 (`bench/parity_global.py` records them).

The same options, ratings and points go into both. Both rate and keep the same reports, cut the same batches, and write
the final answer from the same points.
"""

from __future__ import annotations

import pytest

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.bench.parity import N_QUESTIONS, read_recording
from graphrag_pipeline_tests.bench.parity_global import (
    RECORDING,
    SHARE,
    WHAT,
    compare_cases,
    levels_of,
    make_cases,
    run_ours,
)

pytestmark = pytest.mark.slow

PLACES = (5, 12, 19, 24, 33, 48, 57)
"""Dynamic and static, all relevant and none, nothing relevant above a level, unreadable ratings, a bad score."""


@pytest.fixture(scope="module")
def searched(carol: GraphIndex, tmp_path_factory: pytest.TempPathFactory) -> tuple[list, list, list]:
    every, recorded = make_cases(levels_of(carol), N_QUESTIONS), read_recording(RECORDING)
    cases = [every[place] for place in PLACES]
    return cases, run_ours(carol, cases, tmp_path_factory.mktemp("asking")), [recorded[place] for place in PLACES]


@pytest.mark.parametrize("place", range(len(WHAT)), ids=list(WHAT))
def test_global_search_is_that_of_microsoft_graphrag(searched: tuple[list, list, list], place: int) -> None:
    comparison = compare_cases(*searched)[place]
    assert not comparison.unexplained
    others = [d for d in comparison.differences if d.reason != SHARE]
    assert all(int(d.question.rstrip("?").rsplit(" ", 1)[1]) % 10 == 9 for d in others)


def test_the_cases_tell_something_apart(searched: tuple[list, list, list]) -> None:
    cases, ours, _ = searched
    assert len({len(found["kept"]) for found in ours}) > 4 and any(not found["kept"] for found in ours)
    assert any(len(found["batches"]) > 5 for found in ours) and any(case.has_bad_score for case in cases)
    assert all(bool(found["reduced"]) == bool(found["batches"]) for found in ours)
