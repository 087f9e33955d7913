"""Communities that continue a published hierarchy: only the parts that a change touched are divided again."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_pipeline.identity import entity_id
from graphrag_pipeline.indexing.communities.detection import detect_communities
from graphrag_pipeline.indexing.communities.leiden import Blocks, build_graph, score_modularity
from graphrag_pipeline.indexing.communities.stable import LEAST_SHARE, PublishedGraph
from graphrag_pipeline.settings.settings import CommunitiesSettings
from graphrag_pipeline_tests.support.corpora.random_graphs import (
    SETTINGS,
    assert_hierarchy,
    detect,
    graphs,
    members_by_level,
    ring,
)
from graphrag_pipeline_tests.support.corpora.stage_graph import StageGraph, make_graph, shuffled
from graphrag_pipeline_tests.support.thoroughness import repetitions


def publish(graph: StageGraph, communities: pa.Table) -> PublishedGraph:
    return PublishedGraph(graph.entities, graph.relationships, communities)


def go_on(graph: StageGraph, before: StageGraph, options: CommunitiesSettings = SETTINGS) -> pa.Table:
    """Detect the communities of a graph after those of another graph were published."""
    published = publish(before, detect(before, options))
    return detect_communities(graph.entities, graph.relationships, options, published)


def modularity(graph: StageGraph, communities: pa.Table) -> float:
    """Return the modularity of level 0."""
    names = sorted(graph.entities["id"].to_pylist())
    label_of = {
        name: label for label, members in enumerate(members_by_level(communities).get(0, [])) for name in members
    }
    blocks = Blocks(
        np.arange(len(names)), np.array([0, len(names)]), np.array([-1]),
        build_graph(pa.array(names, pa.string()), graph.relationships),
    )  # fmt: skip
    return float(score_modularity(blocks, np.array([label_of[name] for name in names]), SETTINGS.resolution)[0])


def ids_of(communities: pa.Table) -> set[str]:
    return set(communities["id"].to_pylist())


def without(communities: pa.Table, others: pa.Table) -> list[dict]:
    """Return the communities that are not in `others`."""
    return [row for row in communities.to_pylist() if row["id"] not in ids_of(others)]


@settings(max_examples=repetitions(15, thorough=100))
@given(graphs, graphs)
def test_any_published_communities_give_a_hierarchy_of_connected_sets(before, graph):
    communities = go_on(graph, before)
    assert_hierarchy(communities, graph)
    network = nx.Graph(zip(*(graph.relationships[c].to_pylist() for c in ("source_id", "target_id")), strict=True))
    network.add_nodes_from(graph.entities["id"].to_pylist())
    assert all(nx.is_connected(network.subgraph(members)) for members in communities["entity_ids"].to_pylist())


@settings(max_examples=repetitions(15, thorough=100))
@given(graphs, graphs)
def test_clustering_again_from_the_result_changes_nothing(before, graph):
    communities = go_on(graph, before)
    again = detect_communities(graph.entities, graph.relationships, SETTINGS, publish(graph, communities))
    assert again.equals(communities)


@settings(max_examples=repetitions(15, thorough=100))
@given(graphs)
def test_after_an_empty_graph_or_another_one_it_is_a_cold_run(graph):
    strangers = make_graph(ring("STRANGER", 3))
    assert go_on(graph, make_graph({})).equals(detect(graph))
    assert go_on(graph, strangers).equals(detect(graph))


@settings(max_examples=repetitions(15, thorough=100))
@given(graphs, graphs, st.integers(0, 99))
def test_row_order_of_neither_graph_matters(before, graph, seed):
    mixed = [
        g._replace(entities=shuffled(g.entities, seed), relationships=shuffled(g.relationships, seed))
        for g in (before, graph)
    ]
    published = publish(mixed[0], shuffled(detect(before), seed))
    assert detect_communities(mixed[1].entities, mixed[1].relationships, SETTINGS, published).equals(
        go_on(graph, before)
    )


@settings(max_examples=repetitions(15, thorough=100))
@given(graphs, graphs)
def test_it_is_nearly_as_modular_as_a_cold_run(before, graph):
    best = modularity(graph, detect(graph))
    assert modularity(graph, go_on(graph, before)) >= best - (1 - LEAST_SHARE) * abs(best) - 1e-12


@settings(max_examples=repetitions(15, thorough=100))
@given(graphs, graphs)
def test_a_component_without_a_change_keeps_its_communities_unless_all_are_new(before, graph):
    edges = ring("Z", 6)
    before, graph = (
        StageGraph(*(pa.concat_tables(pair) for pair in zip(g, make_graph(edges), strict=True)))
        for g in (before, graph)
    )
    inside = {entity_id(title) for pair in edges for title in pair}

    def of_component(communities: pa.Table) -> set[str]:
        return {row["id"] for row in communities.to_pylist() if set(row["entity_ids"]) <= inside}

    communities = go_on(graph, before)
    assert of_component(communities) == of_component(detect(before)) or communities.equals(detect(graph))


def test_a_new_entity_changes_the_community_that_it_joins_and_nothing_beside_it():
    before = make_graph(ring("A", 12))
    graph = make_graph(ring("A", 12) | {("A3.2", "NEW"): [], ("A3.3", "NEW"): []})
    published, communities = detect(before), go_on(graph, before)
    joined = next(row for row in members_by_level(communities)[0] if entity_id("NEW") in row)
    assert {entity_id("A3.2"), entity_id("A3.3")} < joined < set(graph.entities["id"].to_pylist())
    assert all(set(row["entity_ids"]) <= joined for row in without(communities, published))
    assert all(set(row["entity_ids"]) <= joined for row in without(published, communities))


def test_a_lost_entity_changes_the_community_that_it_was_in_and_nothing_beside_it():
    before = make_graph(ring("A", 12))
    graph = make_graph({pair: [] for pair in ring("A", 12) if "A3.4" not in pair})
    published, communities = detect(before), go_on(graph, before)
    left = next(row for row in members_by_level(published)[0] if entity_id("A3.4") in row)
    assert all(set(row["entity_ids"]) <= left for row in without(published, communities))
    assert all(set(row["entity_ids"]) < left for row in without(communities, published))


def test_new_entities_that_belong_together_become_a_community():
    before = make_graph(ring("A", 6))
    communities = go_on(make_graph(ring("A", 6) | ring("B", 1) | {("A0.2", "B0.2"): []}), before)
    clique = {entity_id(f"B0.{i}") for i in range(5)}
    assert clique in members_by_level(communities)[0]
    assert ids_of(detect(before)) <= ids_of(communities)


def test_a_result_worse_than_a_cold_run_is_replaced_by_one_and_reported():
    cliques = {pair: [] for block in range(20) for pair in combinations([f"{block}.{i}" for i in range(4)], 2)}
    # One link between two cliques moves no entity by itself; yet ten pairs are better than twenty cliques.
    links = {(f"{block}.0", f"{block + 1}.0"): [] for block in range(0, 20, 2)}
    weights = dict.fromkeys(cliques, 10.0) | dict.fromkeys(links, 20.0)
    before, graph = make_graph(cliques, weights=weights), make_graph(cliques | links, weights=weights)
    lines: list[str] = []
    published = publish(before, detect(before))
    communities = detect_communities(graph.entities, graph.relationships, SETTINGS, published, lines.append)
    assert communities.equals(detect(graph))
    assert len(members_by_level(communities)[0]) == 10
    assert len(lines) == 1 and "from cold" in lines[0]


def _random_pairs(seed: int, n_blocks: int, size: int) -> set[tuple[str, str]]:
    """Return relationships inside blocks that Leiden can divide in several ways, and few between blocks."""
    rng = np.random.default_rng(seed)
    names = [(block, f"{block}.{i}") for block in range(n_blocks) for i in range(size)]
    return {(a, b) for (p, a), (q, b) in combinations(names, 2) if rng.random() < (0.15 if p == q else 0.002)}


def test_blocks_that_are_kept_and_blocks_that_are_divided_from_cold_do_not_mix():
    for seed in range(8):
        old, other = (_random_pairs(n, n_blocks=5, size=30) for n in (seed, seed + 100))
        inside = {pair for pair in old ^ other if all(name.startswith(("0.", "1.")) for name in pair)}
        before, graph = (make_graph(dict.fromkeys(pairs, ())) for pairs in (old, (old - inside) | (other & inside)))
        assert_hierarchy(go_on(graph, before), graph)
