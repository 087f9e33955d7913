"""Global search against recorded outputs of Microsoft GraphRAG 3.3.0 (`bench/parity_global.py` records them).

The same options, ratings and points go into both. Both rate and keep the same reports, cut the same batches, and write
the final answer from the same points. Where scores are odd, a difference counts only if it is gone once they are whole.
"""

from __future__ import annotations

from typing import Any

import pytest

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.bench.parity import N_QUESTIONS, Comparison, read_recording
from graphrag_pipeline_tests.bench.parity_global import (
    REASONS,
    RECORDING,
    REDUCED,
    compare_cases,
    levels_of,
    make_cases,
    run_ours,
)
from graphrag_pipeline_tests.support.thoroughness import IS_THOROUGH

PLACES = (5, 7, 8, 9, 10, 12, 24, 63, *((20, 33, 48, 57) if IS_THOROUGH else ()))
"""Dynamic and static, all relevant and none, nothing relevant above a level, exact budgets, all kinds of odd scores."""
Searched = tuple[list[Any], list[dict[str, Any]], dict[str, list[Any]]]


@pytest.fixture(scope="module")
def searched(carol: GraphIndex, tmp_path_factory: pytest.TempPathFactory) -> Searched:
    every, recorded = make_cases(levels_of(carol), N_QUESTIONS), read_recording(RECORDING)
    cases = [every[place] for place in PLACES]
    odd = [case.place for case in every if case.odd_scores]
    theirs = {name: [recorded[name][odd.index(case.place)] for case in cases if case.odd_scores] for name in REASONS}
    theirs[""] = [recorded[""][place] for place in PLACES]
    return cases, run_ours(carol, cases, tmp_path_factory.mktemp("asking")), theirs


def find_unexplained(searched: Searched) -> list[str]:
    return [f"{found.what}: {d.question}" for found in compare_cases(*searched) for d in found.unexplained]


def points_of_plain_scores(searched: Searched) -> Comparison:
    return next(found for found in compare_cases(*searched) if found.what.startswith("global, plain scores"))


def test_global_search_is_that_of_microsoft_graphrag(searched: Searched) -> None:
    assert find_unexplained(searched) == []


def test_no_reason_excuses_points_in_another_order_or_too_few_or_too_many(searched: Searched) -> None:
    cases, ours, theirs = searched
    points = [found[REDUCED].split("\n\n") for found in ours]
    wrong = {
        "turned round": [given[::-1] for given in points],
        "without the first": [given[1:] for given in points],
        "without the last": [given[:-1] for given in points],
        "one more": [[*given, "Another point."] for given in points],
    }
    for change, found in wrong.items():
        changed = [{**was, REDUCED: "\n\n".join(listed)} for was, listed in zip(ours, found, strict=True)]
        n_changed = sum(now[REDUCED] != was[REDUCED] for now, was in zip(changed, ours, strict=True))
        assert len(find_unexplained((cases, changed, theirs))) == n_changed > len(PLACES) / 2, change


def test_the_cases_tell_something_apart(searched: Searched) -> None:
    cases, ours, _ = searched
    assert len({len(found["kept"]) for found in ours}) > 4 and any(not found["kept"] for found in ours)
    assert any(len(found["batches"]) > 5 for found in ours) and {case.odd_scores for case in cases} == {"", *REASONS}
    assert all(bool(found[REDUCED]) == bool(found["batches"]) for found in ours)
    assert points_of_plain_scores(searched).n == (7 if IS_THOROUGH else 5)
