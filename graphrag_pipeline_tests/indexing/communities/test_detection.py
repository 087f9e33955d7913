from __future__ import annotations

import math

import networkx as nx
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import entity_id
from graphrag_pipeline.indexing.communities import leiden
from graphrag_pipeline.settings.settings import CommunitiesSettings
from graphrag_pipeline.tables import COMMUNITIES
from graphrag_pipeline_tests.support.corpora.random_graphs import (
    assert_hierarchy,
    detect,
    graphs,
    members_by_level,
    ring,
)
from graphrag_pipeline_tests.support.corpora.stage_graph import make_graph, read_christmas_carol, shuffled


@settings(deadline=None)
@given(graphs)
def test_communities_are_a_hierarchy_of_connected_sets(graph):
    communities = detect(graph)
    assert communities.schema == COMMUNITIES.schema
    assert_hierarchy(communities, graph)
    network = nx.Graph(zip(*(graph.relationships[c].to_pylist() for c in ("source_id", "target_id")), strict=True))
    network.add_nodes_from(graph.entities["id"].to_pylist())
    for row in communities.to_pylist():
        assert nx.is_connected(network.subgraph(row["entity_ids"]))


@settings(deadline=None)
@given(graphs, st.integers(0, 99))
def test_row_order_does_not_matter(graph, seed):
    mixed = graph._replace(entities=shuffled(graph.entities, seed), relationships=shuffled(graph.relationships, seed))
    assert detect(mixed).equals(detect(graph))


def test_relationships_read_in_slices_give_the_same_communities(monkeypatch):
    graph = make_graph(ring("A", 4))
    rows = graph.relationships
    slices = pa.concat_tables([rows.slice(start, 2) for start in range(0, len(rows), 2)])
    for n_rows in (1, 5, 1000):
        monkeypatch.setattr(leiden, "_SLICE_ROWS", n_rows)
        assert detect(graph._replace(relationships=ds.dataset(slices))).equals(detect(graph))
    lonely = make_graph({}, {"A": []})
    assert detect(lonely._replace(relationships=ds.dataset(lonely.relationships))).equals(detect(lonely))


def test_source_and_target_are_interchangeable():
    graph = make_graph(ring("A", 4))
    names = [{"source_id": "target_id", "target_id": "source_id"}.get(n, n) for n in graph.relationships.schema.names]
    turned = graph._replace(relationships=graph.relationships.rename_columns(names))
    assert detect(turned).equals(detect(graph))


def test_cliques_are_found():
    found = detect(make_graph(ring("A", 6)), CommunitiesSettings(max_cluster_size=5))
    assert {frozenset(entity_id(f"A{block}.{i}") for i in range(5)) for block in range(6)} <= {
        frozenset(row["entity_ids"]) for row in found.to_pylist()
    }


def test_an_entity_without_relationships_is_a_community_of_one_at_level_0():
    rows = detect(make_graph({("A", "B"): []}, {"LONELY": []})).to_pylist()
    assert [(row["level"], row["parent_id"]) for row in rows if row["entity_ids"] == [entity_id("LONELY")]] == [
        (0, None)
    ]


def test_a_graph_without_relationships_or_entities_is_accepted():
    assert detect(make_graph({}, {"A": [], "B": []}))["size"].to_pylist() == [1, 1]
    assert detect(make_graph({})).equals(COMMUNITIES.empty())


def test_a_community_that_does_not_fall_apart_is_final():
    star = make_graph({("HUB", f"LEAF {i}"): [] for i in range(20)})
    assert detect(star)["size"].to_pylist() == [21]


def descendants(communities):
    """Map the members of each split root to the ids of all communities below it."""
    rows = {row["id"]: row for row in communities.to_pylist()}
    below: dict[tuple, set[str]] = {}
    for identity, row in rows.items():
        root = row
        while root["parent_id"]:
            root = rows[root["parent_id"]]
        if root is not row:
            below.setdefault(tuple(root["entity_ids"]), set()).add(identity)
    return below


def test_an_untouched_community_splits_the_same_way_again():
    settings = CommunitiesSettings(max_cluster_size=4, resolution=0.5)
    edges = ring("A", 8) | ring("B", 9) | ring("C", 10)
    before = descendants(detect(make_graph(edges), settings))
    after = descendants(detect(make_graph(edges | ring("D", 9) | {("C0.3", "C5.3"): []}), settings))
    common = before.keys() & after.keys()
    assert common
    assert all(before[root] == after[root] for root in common)


def test_large_communities_are_split_until_they_fit():
    levels = members_by_level(detect(make_graph(ring("A", 30)), CommunitiesSettings(max_cluster_size=5)))
    deepest = {}
    for level in sorted(levels):
        for members in levels[level]:
            deepest |= dict.fromkeys(members, len(members))
    assert max(deepest.values()) <= 5


@pytest.mark.parametrize("weight", [0.0, -3.0, 1e300])
def test_weights_without_strength_or_bound_still_connect(weight):
    graph = make_graph({("A", "B"): [], ("C", "D"): []}, weights={("A", "B"): weight})
    assert sorted(detect(graph)["size"].to_pylist()) == [2, 2]


@pytest.mark.parametrize("weight", [math.nan, math.inf])
def test_a_weight_that_is_not_a_number_is_an_error_that_names_it(weight):
    graph = make_graph({("A", "B"): []}, weights={("A", "B"): weight})
    with pytest.raises(PipelineError, match=graph.relationships["id"][0].as_py()):
        detect(graph)


def test_a_relationship_to_nowhere_is_an_error_that_names_it():
    graph = make_graph({("A", "B"): []})
    with pytest.raises(PipelineError, match=r"target_id .* is not an entity"):
        detect(graph._replace(entities=graph.entities.filter(pa.array([True, False]))))


def test_loops_do_not_count():
    graph = make_graph({("A", "B"): []})
    loop = graph.relationships.to_pylist()[0] | {"id": "loop", "target_id": entity_id("A"), "source_id": entity_id("A")}
    with_loop = pa.concat_tables([graph.relationships, pa.Table.from_pylist([loop], schema=graph.relationships.schema)])
    assert detect(graph._replace(relationships=with_loop)).equals(detect(graph))


def test_the_seed_is_a_setting_and_repeats():
    graph = read_christmas_carol()
    first = detect(graph, CommunitiesSettings())
    assert first.equals(detect(graph, CommunitiesSettings()))
    assert detect(graph, CommunitiesSettings(seed=2**70)).num_rows > 0


def test_a_real_graph_is_placed_whole():
    graph = read_christmas_carol()
    communities = detect(graph, CommunitiesSettings())
    assert_hierarchy(communities, graph)
    levels = members_by_level(communities)
    assert sum(map(len, levels[0])) == 561
    assert 10 <= len(levels[0]) <= 60
    assert len(levels) >= 3
