"""GraphML that networkx reads back with every attribute."""

import json
import re
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.interchange.graphml_file import write_graphml, xml_id, xml_text
from graphrag_pipeline_tests.support.corpora.exported_index import freeze_hard_index


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphml")
    snapshot = freeze_hard_index(folder / "root")
    counts = write_graphml(snapshot, folder)
    assert counts == {"graph.graphml nodes": 5, "graph.graphml edges": 3}
    return snapshot, nx.read_graphml(folder / "graph.graphml")


def legal(text):
    return re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "\ufffd", re.sub("\r\n?", "\n", text))


def expected(row):
    """Return a row as a reader sees it: no nulls, lists as JSON, no characters forbidden in XML."""
    values = {name: value for name, value in row.items() if value is not None}
    return {
        name: legal(value) if isinstance(value, str) else json.loads(json.dumps(value))
        for name, value in values.items()
    }


def read(attributes):
    return {
        name: [legal(item) for item in json.loads(value)] if name in ("names", "types", "text_unit_ids") else value
        for name, value in attributes.items()
    }


def test_every_column_of_entities_is_an_attribute(written):
    snapshot, graph = written
    assert snapshot.n_rows("entities") == graph.number_of_nodes() > 0
    for row in snapshot.table("entities").to_pylist():
        attributes = {name: value for name, value in graph.nodes[row["id"]].items() if "community_" not in name}
        assert read(attributes) == expected(row | {"names": [legal(name) for name in row["names"]]})


def test_every_column_of_relationships_is_an_attribute(written):
    snapshot, graph = written
    assert not graph.is_directed() and snapshot.n_rows("relationships") == graph.number_of_edges() > 0
    for row in snapshot.table("relationships").to_pylist():
        attributes = dict(graph.edges[row["source_id"], row["target_id"]])
        assert read(attributes) == expected(row)


def test_entities_know_their_community_at_each_level(written):
    snapshot, graph = written
    for row in snapshot.table("communities").to_pylist():
        members = {n for n, number in graph.nodes(data=f"community_{row['level']}") if number == row["community"]}
        assert members == set(row["entity_ids"])
    assert sum("community_1" not in attributes for _, attributes in graph.nodes(data=True)) == 1  # the fog


@given(st.text(st.characters(codec=None)))
def test_any_text_comes_back_but_for_characters_forbidden_in_xml(text):
    read_back = ElementTree.fromstring(f"<data>{escape(xml_text(text))}</data>").text or ""
    assert read_back == re.sub("[\ud800-\udfff]", "\ufffd", legal(text))


@given(st.text(alphabet='a\x00\x01\x1b\x7f\ufffe\ufffd<"&'), st.text(alphabet='a\x00\x01\x1b\ufffd<"&'))
def test_any_id_is_an_attribute_of_its_own(first, second):
    read = [ElementTree.fromstring(f"<node id={quoteattr(xml_id(id))}/>").get("id") for id in (first, second)]
    assert (read[0] == read[1]) == (first == second)
