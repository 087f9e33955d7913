"""Best-first relevance tests: the budget is kept, barren communities are left, and nothing is tested twice."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.query.search.lazy_candidates import Communities, explore

TWO_BRANCHES = Communities(
    members={0: [0, 1, 2, 5], 1: [0, 1], 2: [2, 5], 9: [3, 4, 6, 7, 8]}, children={0: [1, 2]}, roots=[0, 9]
)


def judge(relevant: set[int], log: list[int] | None = None) -> Callable[[list[list[int]]], list[list[bool]]]:
    def test(batches: list[list[int]]) -> list[list[bool]]:
        if log is not None:
            log.extend(candidate for batch in batches for candidate in batch)
        return [[candidate in relevant for candidate in batch] for batch in batches]

    return test


def test_a_community_is_given_up_after_failures_in_a_row() -> None:
    found = explore(TWO_BRANCHES, judge({0, 2}), budget=100, max_failures=2, batch_size=1)
    assert found.pruned == (9,)
    assert set(found.tested) == {0, 1, 2, 3, 4, 5} and found.is_exhausted


def test_a_community_that_gave_something_gives_way_to_its_children() -> None:
    found = explore(TWO_BRANCHES, judge({0}), budget=100, max_failures=1, batch_size=1)
    assert found.tested == (0, 3, 1, 2)
    assert found.entered == (0, 1, 2, 9) and found.pruned == (1, 2, 9)


def test_a_failure_counts_no_more_once_something_is_found() -> None:
    lone = Communities({0: [0, 1, 2, 3, 4, 5]}, {}, [0])
    found = explore(lone, judge({1, 3}), budget=100, max_failures=2, batch_size=1)
    assert found.tested == (0, 1, 2, 3, 4, 5)
    assert explore(lone, judge(set()), 100, 2, 1).tested == (0, 1)


def test_the_budget_stops_the_search() -> None:
    found = explore(TWO_BRANCHES, judge(set(range(9))), budget=3, max_failures=5, batch_size=2)
    assert len(found.tested) == 3 and not found.is_exhausted


@st.composite
def hierarchies(draw: st.DrawFn) -> Communities:
    n = draw(st.integers(1, 20))
    roots = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    leaves = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    members: dict[int, list[int]] = {}
    children: dict[int, set[int]] = {}
    for candidate, (root, leaf) in enumerate(zip(roots, leaves, strict=True)):
        members.setdefault(root, []).append(candidate)
        members.setdefault(10 + 3 * root + leaf, []).append(candidate)
        children.setdefault(root, set()).add(10 + 3 * root + leaf)
    return Communities(members, {root: sorted(found) for root, found in children.items()}, sorted(set(roots)))


@given(hierarchies(), st.sets(st.integers(0, 19)), st.integers(1, 25), st.integers(1, 4), st.integers(1, 4))
def test_laws(communities: Communities, relevant: set[int], budget: int, max_failures: int, batch: int) -> None:
    log: list[int] = []
    found = explore(communities, judge(relevant, log), budget, max_failures, batch)
    everything = {candidate for members in communities.members.values() for candidate in members}
    assert len(log) == len(set(log)) <= budget
    assert sorted(found.tested) == sorted(log)
    assert found.is_exhausted or len(log) == budget
    assert found == explore(communities, judge(relevant), budget, max_failures, batch)
    if not found.pruned and found.is_exhausted:
        assert set(log) == everything
