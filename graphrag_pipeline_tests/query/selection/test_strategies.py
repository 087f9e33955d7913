from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.selection.reranking import Candidates, Limits
from graphrag_pipeline.query.selection.strategies import (
    RANKED,
    STRATEGIES,
    divide_quota,
    largest_remainder,
    select_text_units,
)
from graphrag_pipeline_tests.support.corpora.popular_entities import (
    CHAMAZULENE_UNITS,
    GIVES_MAIN_ENTITY_MOST,
    HERB_UNITS,
    OF_CHAMOMILE,
)


def make_candidates(*units_of_entities, similarity=(0.95, 0.82, 0.71), costs=None, n_relationships=None, own=None):
    """Return candidates from 1-based text unit numbers per entity: 1 is the first text unit.

    Args:
        n_relationships: of any entity in each text unit.
        own: per entity, its own relationships in each of its text units; None: those of any.
    """
    n = max(max(units, default=0) for units in units_of_entities)
    stated = np.zeros(n, dtype=np.int64) if n_relationships is None else np.array(n_relationships)
    text_units = tuple(np.array(units, dtype=np.int64) - 1 for units in units_of_entities)
    return Candidates(
        text_units=text_units,
        n_of_entity=tuple(stated[units] for units in text_units) if own is None else tuple(map(np.array, own)),
        similarity=np.array(similarity[: len(units_of_entities)]),
        costs=np.ones(n, dtype=np.int64) if costs is None else np.array(costs),
    )


def selected(strategy, candidates, budget, **limits):
    return [pick.text_unit + 1 for pick in select_text_units(strategy, candidates, Limits(budget, **limits))]


def count_per_entity(picks, n_entities):
    return np.bincount([pick.entity for pick in picks], minlength=n_entities).tolist()


@st.composite
def candidate_sets(draw):
    n = draw(st.integers(1, 25))
    units = st.lists(st.integers(0, n - 1), unique=True).map(lambda u: np.array(u, dtype=np.int64))
    entities = draw(st.lists(units, min_size=1, max_size=6))
    similarity = draw(st.lists(st.floats(-1, 1), min_size=len(entities), max_size=len(entities)))
    own = tuple(draw(st.lists(st.integers(0, 9), min_size=len(e), max_size=len(e)).map(np.array)) for e in entities)
    costs = st.lists(st.integers(1, 40), min_size=n, max_size=n).map(np.array)
    return Candidates(tuple(entities), own, np.array(similarity), draw(costs))


def make_chamazulene(in_shared=0):
    """The case of the source; TU1 and TU5 state `in_shared` relationships of the two rare entities."""
    own = [OF_CHAMOMILE, [in_shared, in_shared, 2, 1], [in_shared, 1]]
    return make_candidates(*CHAMAZULENE_UNITS.values(), own=own)


CHAMAZULENE = make_chamazulene()
TRADITIONAL_MEDICINE = make_candidates(*HERB_UNITS.values())


def test_depth_first_lets_a_popular_entity_take_the_whole_budget():
    assert selected("depth_first", CHAMAZULENE, 20) == list(range(1, 21))
    assert selected("depth_first", CHAMAZULENE, 100) == [*range(1, 51), 51, 52, 53]


@pytest.mark.parametrize("in_shared", [0, 1, 2])
@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - {"depth_first"}))
def test_every_other_strategy_reaches_the_rare_entities(strategy, in_shared):
    chosen = set(selected(strategy, make_chamazulene(in_shared), 20))
    assert 53 in chosen
    assert {51, 52} & chosen


def test_each_strategy_of_the_proposals_takes_what_they_say():
    assert selected("per_entity_cap", CHAMAZULENE, 20, cap=2) == [1, 2, 51, 52, 53, 5]
    assert selected("round_robin", CHAMAZULENE, 8) == [1, 51, 53, 2, 52, 5, 3, 4]
    assert selected("minimum_guarantee", CHAMAZULENE, 9) == [1, 2, 51, 52, 53, 5, 3, 4, 6]


@pytest.mark.parametrize(("strategy", "is_most"), GIVES_MAIN_ENTITY_MOST.items())
def test_which_strategies_give_the_main_entity_the_most(strategy, is_most):
    picks = select_text_units(strategy, TRADITIONAL_MEDICINE, Limits(20))
    chamomile, *others = count_per_entity(picks, 3)
    assert (chamomile > max(others)) is is_most


def test_a_round_is_only_used_up_by_a_text_unit_not_yet_taken():
    assert selected("round_robin", make_candidates([1, 2], [1, 3], [1, 4]), 3) == [1, 3, 4]


def test_a_guarantee_is_only_used_up_by_text_units_not_yet_taken():
    candidates = make_candidates([1, 2, 3], [1, 2, 4, 5], [1, 6])
    assert set(selected("minimum_guarantee", candidates, 6)) == {1, 2, 3, 4, 5, 6}


def test_a_guarantee_that_does_not_fit_is_served_in_rounds():
    assert selected("minimum_guarantee", make_candidates([1, 2, 3], [4, 5], [6, 7]), 4) == [1, 2, 4, 6]


def test_text_units_with_more_relationships_come_first_and_ties_in_reading_order():
    candidates = make_candidates([1, 2, 3, 4], n_relationships=[0, 2, 5, 2])
    assert selected("depth_first", candidates, 10) == [3, 2, 4, 1]


def test_ties_are_in_the_order_of_the_entitys_own_list():
    candidates = make_candidates([4, 1, 3, 2], n_relationships=[2, 0, 5, 2])
    assert selected("depth_first", candidates, 10) == [3, 4, 1, 2]


@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - {"depth_first"}))
def test_a_text_unit_that_does_not_fit_is_skipped(strategy):
    assert set(selected(strategy, make_candidates([1, 2, 3], costs=[5, 9, 4]), 10)) == {1, 3}


def test_depth_first_ends_at_the_first_text_unit_that_does_not_fit():
    assert selected("depth_first", make_candidates([1, 2, 3], [4], costs=[5, 9, 4, 1]), 10) == [1]


def test_an_entity_offers_its_text_units_by_its_own_relationships():
    candidates = make_candidates([1, 2], [2, 3, 4], own=[[0, 9], [9, 1, 2]])
    assert selected("depth_first", candidates, 10) == [2, 1, 4, 3]
    assert selected("round_robin", candidates, 10) == [2, 4, 1, 3]


def test_a_cap_limits_each_entity():
    picks = select_text_units("per_entity_cap", TRADITIONAL_MEDICINE, Limits(20, cap=3))
    assert count_per_entity(picks, 3) == [3, 3, 3]


def test_quotas_are_rounded_by_largest_remainder():
    assert largest_remainder(np.array([0.95, 0.82, 0.71]), 39) == [15, 13, 11]


def test_quotas_follow_similarity_and_unused_quota_is_divided_again():
    wide = make_candidates(range(1, 51), range(51, 101), range(101, 151))
    assert count_per_entity(select_text_units("weighted_quota", wide, Limits(39)), 3) == [15, 13, 11]
    narrow = make_candidates(range(1, 51), [51], range(101, 151))
    counts = count_per_entity(select_text_units("weighted_quota", narrow, Limits(39)), 3)
    assert counts[1] == 1
    assert sum(counts) == 39


def test_equal_quotas_where_nothing_is_similar():
    candidates = make_candidates(range(1, 11), range(11, 21), similarity=(0.0, -0.1))
    assert count_per_entity(select_text_units("weighted_quota", candidates, Limits(6)), 2) == [3, 3]


def test_an_entity_without_similarity_has_a_quota_of_one():
    candidates = make_candidates(range(1, 11), range(11, 21), range(21, 31), similarity=(0.9, 0.0, -0.5))
    assert count_per_entity(select_text_units("weighted_quota", candidates, Limits(6)), 3) == [4, 1, 1]
    assert selected("weighted_quota", candidates, 2) == [1, 11]


@given(
    weights=st.lists(st.floats(0, 1), min_size=1, max_size=8).map(np.array),
    n=st.integers(0, 60),
    minimum=st.integers(0, 3),
)
def test_laws_of_quotas(weights, n, minimum):
    quotas = divide_quota(weights, n, np.ones(len(weights), dtype=bool), minimum)
    if n >= minimum * len(weights):
        assert sum(quotas) == n and min(quotas) >= minimum
    else:
        assert set(quotas) <= {0, minimum} and sum(quotas) == n // minimum * minimum
    by_weight = [quotas[i] for i in np.lexsort((np.arange(len(weights)), -weights))]
    assert by_weight == sorted(quotas, reverse=True)


@given(candidates=candidate_sets(), n=st.integers(0, 8))
@pytest.mark.parametrize("strategy", ["round_robin", "weighted_quota", "minimum_guarantee"])
def test_every_entity_is_heard_before_one_is_heard_twice(strategy, candidates, n):
    costs = np.ones_like(candidates.costs)
    picks = select_text_units(strategy, replace(candidates, costs=costs), Limits(n + len(candidates.text_units)))
    taken = {pick.text_unit for pick in picks}
    assert all(not len(units) or set(units.tolist()) & taken for units in candidates.text_units)


def test_an_unknown_strategy_is_an_error_that_lists_the_valid_ones():
    with pytest.raises(PipelineError, match=r"'best'; valid: balanced, graph, depth_first, .*minimum_guarantee"):
        select_text_units("best", CHAMAZULENE, Limits(20))
    with pytest.raises(PipelineError, match=r"'depthfirst'; did you mean 'depth_first'\? Valid: balanced"):
        select_text_units("depthfirst", CHAMAZULENE, Limits(20))


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(candidates=candidate_sets(), budget=st.integers(0, 300))
def test_laws_of_every_strategy(strategy, candidates, budget):
    picks = select_text_units(strategy, candidates, Limits(budget))
    chosen = [pick.text_unit for pick in picks]
    left = budget - int(candidates.costs[chosen].sum())
    assert left >= 0
    assert len(chosen) == len(set(chosen))
    of_entities = set(np.concatenate(candidates.text_units).tolist())
    for pick in picks:
        units = candidates.text_units[pick.entity].tolist() if pick.entity >= 0 else None
        assert pick.text_unit in units if units is not None else pick.text_unit not in of_entities
    if strategy not in ("per_entity_cap", "depth_first"):
        offered = set(range(len(candidates.costs))) if strategy in RANKED else of_entities
        assert all(candidates.costs[unit] > left for unit in offered - set(chosen))


def take_as_the_reference_does(candidates, budget):
    """Spell out the four steps of Microsoft GraphRAG's rule."""
    seen, infos = set(), []
    for index, (units, counts) in enumerate(zip(candidates.text_units, candidates.n_of_entity, strict=True)):
        for unit, n in zip(units.tolist(), counts.tolist(), strict=True):
            if unit not in seen:
                seen.add(unit)
                infos.append((unit, index, n))
    infos.sort(key=lambda info: (info[1], -info[2]))
    taken = []
    for unit, index, _ in infos:
        budget -= candidates.costs[unit]
        if budget < 0:
            break
        taken.append((unit, index))
    return taken


@given(candidates=candidate_sets(), budget=st.integers(0, 300))
def test_depth_first_is_the_rule_of_the_reference(candidates, budget):
    picks = select_text_units("depth_first", candidates, Limits(budget))
    assert [(pick.text_unit, pick.entity) for pick in picks] == take_as_the_reference_does(candidates, budget)


@given(candidates=candidate_sets(), guaranteed=st.integers(1, 4))
def test_the_guarantee_holds_where_the_budget_allows(candidates, guaranteed):
    picks = select_text_units("minimum_guarantee", candidates, Limits(10_000, guaranteed=guaranteed))
    counts = count_per_entity(picks, len(candidates.text_units))
    for entity, units in enumerate(candidates.text_units):
        of_others = {pick.text_unit for pick in picks if pick.entity != entity}
        assert counts[entity] >= min(guaranteed, len(set(units.tolist()) - of_others))


@given(candidates=candidate_sets())
def test_round_robin_gives_no_entity_two_more_than_one_that_still_has_some(candidates):
    budget = int(candidates.costs.max()) * 5
    even = replace(candidates, costs=np.ones_like(candidates.costs))
    picks = select_text_units("round_robin", even, Limits(budget))
    counts = count_per_entity(picks, len(even.text_units))
    taken = {pick.text_unit for pick in picks}
    unfinished = [counts[e] for e, units in enumerate(even.text_units) if set(units.tolist()) - taken]
    assert all(max(counts) - count <= 1 for count in unfinished)


@pytest.mark.parametrize(
    ("strategy", "counts"),
    [("per_entity_cap", [2, 5, 5]), ("round_robin", [4, 6, 6]), ("weighted_quota", [4, 6, 6])],
)
def test_a_reserved_text_unit_uses_up_what_its_entity_gets(strategy, counts):
    wide = make_candidates(range(1, 51), range(51, 101), range(101, 151))
    limits = Limits(12 if strategy == "per_entity_cap" else 16, reserved=(3, 0, 0))
    assert count_per_entity(select_text_units(strategy, wide, limits), 3) == counts


def test_a_guarantee_counts_reserved_text_units():
    candidates = make_candidates([1, 2, 3], [4, 5, 6], [7, 8, 9])
    picks = select_text_units("minimum_guarantee", candidates, Limits(4, reserved=(2, 0, 0)))
    assert count_per_entity(picks, 3) == [0, 2, 2]
