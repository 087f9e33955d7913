from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_pipeline.indexing.reports.records import GraphRecords
from graphrag_pipeline.text.tokens import count_tokens_each
from graphrag_pipeline_tests.support.corpora.stage_graph import describe, make_graph


def read(graph):
    return GraphRecords(graph.entities, graph.relationships, graph.covariates, describe(graph), count_tokens_each)


def test_claims_belong_to_their_subject_else_to_their_object_else_to_no_entity():
    claims = [("A", "B", "of the subject"), ("X", "B", "of the object"), ("X", "Y", "of nobody")]
    records = read(make_graph({("A", "B"): []}, {}, claims))
    owners = {
        records.names[int(owner)].as_py(): records.claims.record(i) for i, owner in enumerate(records.claim_owners)
    }
    assert {name: record.description for name, record in owners.items()} == {
        "A": "of the subject",
        "B": "of the object",
    }


def test_white_space_in_descriptions_is_folded():
    texts = {"A": " One\n\n two. ", "B": "Three four.", "C": "Five  six.", "D": "Seven\teight. ", "E": ""}
    records = read(make_graph({}, {title: [text] for title, text in texts.items()}))
    found = {record.fields[0]: record.description for record in map(records.entities.record, range(len(texts)))}
    assert found == {"A": "One two.", "B": "Three four.", "C": "Five six.", "D": "Seven eight.", "E": ""}


def test_each_record_is_counted_once():
    counted = []

    def count(texts):
        counted.extend(texts)
        return [1] * len(texts)

    graph = make_graph({}, {"A": ["One."], "B": ["Two."]})
    records = GraphRecords(graph.entities, graph.relationships, graph.covariates, describe(graph), count)
    for rows in ([0], [0, 1], [1, 0]):
        assert records.entities.tokens(np.array(rows)).tolist() == [1] * len(rows)
    assert len(counted) == 2


@settings(deadline=None)
@given(st.text(max_size=60))
def test_the_byte_bound_is_a_bound(text):
    graph = make_graph({}, {"A": [text]})
    rows = read(graph).entities
    assert rows.tokens(np.array([0]))[0] <= rows.max_tokens[0]


@pytest.mark.parametrize(
    ("title", "names", "text", "expected"),
    [
        ("BOB CRATCHIT", ["BOB CRATCHIT", "Bob Cratchit"], "", "Bob Cratchit"),
        ("SCROOGE", ["SCROOGE"], "Old Scrooge is a miser.", "Scrooge"),
        ("GHOST OF THE PAST", ["GHOST OF THE PAST"], "", "Ghost of the Past"),
        ("WWW.EXAMPLE.ORG", ["WWW.EXAMPLE.ORG"], "", "www.example.org"),
        ("萧炎", ["萧炎"], "萧炎是少爷。", "萧炎"),
        ("A+B (C", [], "", "A+B (C"),
    ],
)
def test_titles_are_shown_as_people_write_them(title, names, text, expected):
    graph = make_graph({}, {title: [text]})
    named = graph.entities.set_column(4, graph.entities.field("names"), pa.array([names], pa.list_(pa.string())))
    records = read(graph._replace(entities=named))
    assert records.names.to_pylist() == [expected]
