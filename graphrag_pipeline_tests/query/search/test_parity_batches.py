"""Batches of the map step against recorded ones of Microsoft GraphRAG 3.3.0 (`bench/parity_batches.py` records them).

No model and no server takes part: the recorded reports of each case are batched again. Tokens decide where a batch
ends, so the recordings at exact limits show an error of one token.
"""

from __future__ import annotations

from typing import Any

import pytest

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.bench.parity import N_QUESTIONS, read_recording
from graphrag_pipeline_tests.bench.parity_batches import (
    N_TOGETHER,
    RECORDING,
    batch_communities,
    compare_limits,
    make_exact_limits,
)
from graphrag_pipeline_tests.bench.parity_global import FINEST, levels_of, make_cases
from graphrag_pipeline_tests.bench.parity_global import RECORDING as GLOBAL


@pytest.fixture(scope="module")
def at_limits() -> list[dict[str, Any]]:
    recorded: list[dict[str, Any]] = read_recording(RECORDING)
    return recorded


def test_batches_of_all_100_cases_are_those_of_microsoft_graphrag(carol: GraphIndex) -> None:
    cases, recorded = make_cases(levels_of(carol), N_QUESTIONS), read_recording(GLOBAL)[""]
    different = [
        case.question
        for case, theirs in zip(cases, recorded, strict=True)
        if batch_communities(carol, theirs["kept"], case.settings.max_context_tokens) != theirs["batches"]
    ]
    assert different == [] and sum(len(theirs["batches"]) for theirs in recorded) > 5 * N_QUESTIONS


def test_a_batch_may_fill_the_limit_to_the_last_token(carol: GraphIndex, at_limits: list[dict[str, Any]]) -> None:
    assert [difference.question for difference in compare_limits(carol, at_limits).differences] == []


def test_each_recorded_limit_is_exact(carol: GraphIndex, at_limits: list[dict[str, Any]]) -> None:
    assert [(found["level"], found["limit"]) for found in at_limits] == make_exact_limits(carol)
    n_first = [len(found["batches"][0]) for found in at_limits]
    assert n_first == [n - less for n in N_TOGETHER for less in (0, 1)] * (FINEST + 1)
