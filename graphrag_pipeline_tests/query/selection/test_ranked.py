import numpy as np

from graphrag_pipeline.query.selection.reranking import Candidates, Limits
from graphrag_pipeline.query.selection.strategies import balanced, graph


def make_candidates(relevance=None, vectors=None, n_relationships=(0, 0, 0, 0), entities=((0, 1, 2, 3),), costs=None):
    return Candidates(
        text_units=tuple(np.array(units, dtype=np.int64) for units in entities),
        n_of_entity=tuple(np.array(n_relationships)[list(units)] for units in entities),
        similarity=np.ones(len(entities)),
        costs=np.ones(4, dtype=np.int64) if costs is None else np.array(costs),
        relevance=None if relevance is None else np.array(relevance),
        read_vectors=None if vectors is None else lambda chosen: np.array(vectors, dtype=np.float32)[chosen],
    )


def chosen(strategy, candidates, budget):
    return [pick.text_unit for pick in strategy(candidates, Limits(budget))]


def test_graph_takes_the_most_relevant_text_units_also_without_a_matched_entity():
    candidates = make_candidates(relevance=[0.1, 0.9, 0.0, 0.5], entities=((0, 2),))
    assert [(pick.text_unit, pick.entity) for pick in graph(candidates, Limits(3))] == [(1, -1), (3, -1), (0, 0)]


def test_balanced_prefers_the_relevant():
    assert chosen(balanced, make_candidates(relevance=[0.1, 0.9, 0.0, 0.5]), 2) == [1, 3]


def test_balanced_prefers_the_dense():
    assert chosen(balanced, make_candidates(n_relationships=(0, 1, 5, 2)), 1) == [2]


def test_balanced_prefers_a_text_unit_of_an_entity_that_has_none_yet():
    entities = ((0, 1, 2), (3,))
    assert set(chosen(balanced, make_candidates(relevance=[0.9, 0.8, 0.7, 0.6], entities=entities), 2)) == {0, 3}


def test_balanced_skips_a_text_unit_that_repeats_another():
    vectors = [[1, 0], [1, 0], [0, 1], [1, 0]]
    candidates = make_candidates(relevance=[0.9, 0.8, 0.7, 0.0], vectors=vectors)
    assert chosen(balanced, candidates, 2) == [0, 2]


def test_the_most_relevant_come_first_in_any_order_of_selection():
    relevance = [0.2, 0.9, 0.4, 0.8]
    assert chosen(balanced, make_candidates(relevance=relevance), 4) == [1, 3, 2, 0]


def test_a_text_unit_that_does_not_fit_is_skipped():
    candidates = make_candidates(relevance=[0.9, 0.8, 0.7, 0.6], costs=[5, 9, 4, 3])
    assert chosen(graph, candidates, 9) == [0, 2]
    assert set(chosen(balanced, candidates, 8)) == {0, 3}


def test_density_is_that_of_an_entity_beside_its_own_densest_text_unit():
    entities = ((0, 1), (2, 3))
    candidates = make_candidates(n_relationships=(9, 4, 1, 0), entities=entities)
    assert chosen(balanced, candidates, 2) == [0, 2]
