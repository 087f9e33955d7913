"""Random graphs for property tests, and the laws of a community hierarchy."""

from __future__ import annotations

from itertools import combinations

from hypothesis import strategies as st

from graphrag_pipeline.indexing.communities.detection import detect_communities
from graphrag_pipeline.settings.settings import CommunitiesSettings
from graphrag_pipeline_tests.support.corpora.stage_graph import make_graph

SETTINGS = CommunitiesSettings(max_cluster_size=4)


def ring(name, size):
    """Cliques of five, each joined to the next, so that there is something to split."""
    edges = {}
    for block in range(size):
        members = [f"{name}{block}.{i}" for i in range(5)]
        edges |= {pair: [] for pair in combinations(members, 2)}
        edges[(members[0], f"{name}{(block + 1) % size}.1")] = []
    return {pair: texts for pair, texts in edges.items() if pair[0] != pair[1]}


graphs = st.builds(
    lambda pairs, lonely, weights: make_graph(
        {pair: [] for pair in pairs},
        {f"L{i}": [] for i in range(lonely)},
        weights=dict(zip(pairs, weights, strict=False)),
    ),
    st.lists(
        st.tuples(st.sampled_from("ABCDEFGHIJKLMNOP"), st.sampled_from("ABCDEFGHIJKLMNOP")).filter(
            lambda pair: pair[0] < pair[1]
        ),
        unique=True,
        max_size=40,
    ),
    st.integers(0, 3),
    st.lists(st.floats(0, 1e12), min_size=40, max_size=40),
)


def detect(graph, settings=SETTINGS):
    return detect_communities(graph.entities, graph.relationships, settings)


def members_by_level(communities):
    levels = {}
    for row in communities.to_pylist():
        levels.setdefault(row["level"], []).append(set(row["entity_ids"]))
    return levels


def assert_hierarchy(communities, graph):
    """Every entity in one community per level down its branch; children partition their parent."""
    rows = {row["id"]: row for row in communities.to_pylist()}
    assert len(rows) == communities.num_rows
    children: dict[str, list[str]] = {}
    for row in rows.values():
        assert row["size"] == len(row["entity_ids"]) == len(set(row["entity_ids"]))
        assert row["entity_ids"] == sorted(row["entity_ids"])
        assert (row["parent_id"] is None) == (row["level"] == 0)
        if row["parent_id"]:
            assert rows[row["parent_id"]]["level"] == row["level"] - 1
            children.setdefault(row["parent_id"], []).extend(row["entity_ids"])
    for parent, members in children.items():
        assert sorted(members) == rows[parent]["entity_ids"]
    roots = [entity for row in rows.values() if row["level"] == 0 for entity in row["entity_ids"]]
    assert sorted(roots) == sorted(graph.entities["id"].to_pylist())


NAMES = ["SCROOGE", "BOB CRATCHIT", "TINY TIM", "FRED", "MARLEY", "PETER", "MARTHA"]
sentences = st.builds(
    "{} {} {}.".format,
    st.sampled_from(["Scrooge", "Bob Cratchit", "Tiny Tim", "He"]),
    st.sampled_from(["is visited by", "works hard for", "dines with"]),
    st.sampled_from(["the ghost of Marley", "his nephew Fred", "the whole family"]),
)
described_graphs = st.builds(
    make_graph,
    st.dictionaries(
        st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda pair: pair[0] < pair[1]),
        st.lists(sentences, max_size=3),
        max_size=12,
    ),
    st.fixed_dictionaries({name: st.lists(sentences, max_size=3) for name in NAMES}),
    st.lists(st.tuples(st.sampled_from(NAMES), st.just("NONE"), sentences), max_size=3, unique=True),
)
