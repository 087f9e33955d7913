"""The layout of a graph: discs inside their parents and beside each other, entities inside their discs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.publishing.arrays import (
    N_STRONGEST,
    build_adjacency,
    build_layout,
    exchange_places,
    pack_discs,
)
from graphrag_pipeline.tables import CONTRACT_TABLES
from graphrag_pipeline_tests.support.corpora import small_index

ROUNDING = 0.02


def tables_of(n_entities: int, communities: list[tuple[int, int, list[int]]], pairs: list[tuple[int, int]]) -> dict:
    """Contract tables with the columns that a layout reads.

    Args:
        communities: (level, number of the parent, rows of the entities) of each, numbered in this order.
        pairs: rows of the ends of each relationship; its weight is its row + 1.
    """
    ids = [f"e{row}" for row in range(n_entities)]
    degree = np.bincount(np.array(pairs, dtype=np.int64).ravel(), minlength=n_entities)
    levels, parents, members = zip(*communities, strict=True) if communities else ((), (), ())
    columns: dict[str, dict[str, Any]] = {
        "entities": {"id": ids, "title": ids, "degree": degree, "text_unit_ids": [[]] * n_entities},
        "relationships": {
            "source_id": [ids[a] for a, _ in pairs], "target_id": [ids[b] for _, b in pairs],
            "weight": np.arange(1.0, len(pairs) + 1), "text_unit_ids": [[]] * len(pairs),
        },
        "communities": {
            "community": range(len(communities)), "level": levels, "parent": parents,
            "entity_ids": [[ids[row] for row in rows] for rows in members],
        },
    }  # fmt: skip
    tables = {name: table.empty() for name, table in CONTRACT_TABLES.items()}
    for name, found in columns.items():
        schema = CONTRACT_TABLES[name].schema
        tables[name] = pa.table({key: pa.array(list(value), schema.field(key).type) for key, value in found.items()})
    return tables


def layout_of(tables: dict[str, pa.Table]) -> dict[str, np.ndarray]:
    return build_layout(tables, build_adjacency(tables).__getitem__)


@st.composite
def hierarchies(draw: st.DrawFn) -> tuple[int, list[tuple[int, int, list[int]]], list[tuple[int, int]]]:
    """Entities in nested communities of up to three levels, some of them loose, and relationships among them."""
    n = draw(st.integers(1, 40))
    communities: list[tuple[int, int, list[int]]] = []
    parts = [(-1, list(range(n)))]
    for level in range(draw(st.integers(0, 3))):
        finer = []
        for parent, rows in parts:
            marks = draw(st.lists(st.integers(-1, 3), min_size=len(rows), max_size=len(rows)))
            for mark in sorted(set(marks) - {-1}):
                finer.append((len(communities), [row for row, own in zip(rows, marks, strict=True) if own == mark]))
                communities.append((level, parent, finer[-1][1]))
        parts = finer
    ends = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(ends, ends).filter(lambda pair: pair[0] < pair[1]), unique=True, max_size=60))
    return n, communities, pairs


@given(hierarchies())
def test_discs_hold_their_members_and_do_not_overlap(graph: tuple) -> None:
    n, communities, pairs = graph
    layout = layout_of(tables_of(n, communities, pairs))
    circles, positions = layout["community_circles"].astype(float), layout["entity_positions"].astype(float)
    assert np.isfinite(positions).all() and np.isfinite(circles).all()
    for number, (_, parent, rows) in enumerate(communities):
        away = np.hypot(*(positions[rows] - circles[number, :2]).T)
        assert (away <= circles[number, 2] + ROUNDING).all()
        if parent >= 0:
            distance = np.hypot(*(circles[number, :2] - circles[parent, :2]))
            assert distance + circles[number, 2] <= circles[parent, 2] + ROUNDING
        for other in range(number):
            if communities[other][1] == parent and communities[other][0] == communities[number][0]:
                distance = np.hypot(*(circles[number, :2] - circles[other, :2]))
                assert distance >= circles[number, 2] + circles[other, 2] - ROUNDING
    outside = np.setdiff1d(np.arange(n), [row for level, _, rows in communities for row in rows if level == 0])
    for number in (number for number, one in enumerate(communities) if one[0] == 0):
        away = np.hypot(*(positions[outside] - circles[number, :2]).T)
        assert (away > circles[number, 2]).all()


def test_no_two_entities_have_one_place() -> None:
    positions = layout_of(tables_of(300, [(0, -1, list(range(200)))], []))["entity_positions"]
    assert len(np.unique(positions, axis=0)) == 300


def test_the_same_tables_have_the_same_layout() -> None:
    tables = small_index.contract_tables()
    first, second = layout_of(tables), layout_of(tables)
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)


def test_the_entity_of_most_relationships_is_in_the_middle_of_its_disc() -> None:
    layout = layout_of(tables_of(9, [(0, -1, list(range(9)))], [(row, 8) for row in range(8)]))
    assert layout["entity_positions"][8].tolist() == layout["community_circles"][0, :2].tolist()


def test_related_discs_lie_in_one_direction() -> None:
    """Two clans of forty discs each: the mean distance inside a clan is well below that between clans."""
    group, radii = np.zeros(80, dtype=np.int64), np.ones(80)
    pairs = np.array([(a, b) for a in range(80) for b in range(a) if a % 2 == b % 2])
    points, _ = pack_discs(group, radii, pairs, np.ones(len(pairs)))
    distance = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    is_clan = (np.arange(80)[:, None] - np.arange(80)) % 2 == 0
    assert distance[is_clan].mean() < 0.75 * distance[~is_clan].mean()


def test_an_exchange_moves_nothing_out_of_its_ring() -> None:
    places = np.array([[1.0, 0], [-1, 0], [0, 1], [5, 5]])
    ends = np.array([[0, 1], [3, 2]])
    moved = exchange_places(places, np.array([0, 0, 0, -1]), np.zeros((4, 2)), ends, np.ones(2), 3)
    assert moved[3].tolist() == [5, 5]
    assert sorted(moved[:3].tolist()) == sorted(places[:3].tolist())


def test_edges_between_communities_sum_the_weights_of_each_level() -> None:
    tables = tables_of(4, [(0, -1, [0, 1]), (0, -1, [2, 3]), (1, 0, [0]), (1, 0, [1])], [(0, 1), (0, 2), (1, 3)])
    layout = layout_of(tables)
    found = zip(layout["community_edges"].tolist(), layout["community_edge_weights"].tolist(), strict=True)
    assert list(found) == [([0, 1], 5.0), ([2, 3], 1.0)]


def test_only_the_strongest_edges_of_a_community_are_kept() -> None:
    n = 4 * N_STRONGEST
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
    layout = layout_of(tables_of(n, [(0, -1, [row]) for row in range(n)], pairs))
    kept = {tuple(pair) for pair in layout["community_edges"].tolist()}
    weight = {pair: number for number, pair in enumerate(pairs)}
    for row in range(n):
        strongest = sorted((pair for pair in pairs if row in pair), key=lambda pair: -weight[pair])[:N_STRONGEST]
        assert kept.issuperset(strongest)
    assert len(kept) <= n * N_STRONGEST


@pytest.mark.parametrize("parent", [0, 7], ids=["itself", "unknown"])
def test_a_parent_that_cannot_be_one_counts_as_none(parent: int) -> None:
    circles = layout_of(tables_of(2, [(0, parent, [0, 1])], []))["community_circles"]
    assert circles[0, 2] > 0


def test_an_index_without_entities_has_an_empty_layout() -> None:
    layout = layout_of(tables_of(0, [], []))
    assert {len(array) for array in layout.values()} == {0}
