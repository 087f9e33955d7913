"""The acceptance cases of local search, end to end: a budget of 20 text units, one entity that 50 of them name."""

from __future__ import annotations

import pytest

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.selection.strategies import STRATEGIES
from graphrag_pipeline_tests.support.corpora.popular_entities import (
    CHAMAZULENE_EDGES,
    CHAMAZULENE_UNITS,
    GIVES_MAIN_ENTITY_MOST,
    HERB_UNITS,
    NEIGHBOURS,
    open_index,
    search_units,
)

N_UNITS = 20


@pytest.fixture(scope="module")
def chamazulene(tmp_path_factory: pytest.TempPathFactory) -> GraphIndex:
    return open_index(
        tmp_path_factory.mktemp("chamazulene"),
        CHAMAZULENE_UNITS | dict.fromkeys(NEIGHBOURS, ()),
        {
            **dict.fromkeys(NEIGHBOURS, "A wooden bridge over a river in the north."),
            "CHAMOMILE": "What is the anti-inflammatory mechanism of the chamazulene in chamomile?",
            "CHAMAZULENE": "A blue oil.",
            "NF-KB PATHWAY": "A way of signals in cells.",
        },
        CHAMAZULENE_EDGES,
    )


@pytest.fixture(scope="module")
def herbs(tmp_path_factory: pytest.TempPathFactory) -> GraphIndex:
    return open_index(
        tmp_path_factory.mktemp("herbs"),
        HERB_UNITS,
        {
            "CHAMOMILE": "Its status in traditional medicine.",
            "EUROPEAN HERBALISM": "Healing with plants.",
            "LAVENDER": "A purple flower.",
        },
        {},
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_only_depth_first_lets_a_popular_entity_take_the_whole_budget(chamazulene: GraphIndex, strategy: str) -> None:
    question = "What is the anti-inflammatory mechanism of chamazulene?"
    numbers = [number for number, _ in search_units(chamazulene, question, strategy, N_UNITS)]
    found = set(numbers)
    if strategy == "depth_first":
        assert numbers == list(range(1, N_UNITS + 1))
    else:
        assert 53 in found and {51, 52} & found


@pytest.mark.parametrize(("strategy", "is_most"), GIVES_MAIN_ENTITY_MOST.items())
def test_which_strategies_give_the_main_entity_the_most(herbs: GraphIndex, strategy: str, is_most: bool) -> None:
    question = "What is the status of chamomile in European traditional medicine?"
    informed = [entities for _, entities in search_units(herbs, question, strategy, N_UNITS)]
    counts = [informed.count((title,)) for title in ("CHAMOMILE", "EUROPEAN HERBALISM", "LAVENDER")]
    assert sum(counts) == (15 if strategy == "per_entity_cap" else N_UNITS)
    assert (counts[0] > max(counts[1:])) is is_most
