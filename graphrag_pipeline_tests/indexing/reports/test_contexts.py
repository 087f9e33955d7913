from __future__ import annotations

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_pipeline.identity import entity_id, relationship_id, stable_hash
from graphrag_pipeline.indexing.communities.detection import detect_communities
from graphrag_pipeline.indexing.reports.community_rows import iterate_levels
from graphrag_pipeline.indexing.reports.context_text import ChildReport
from graphrag_pipeline.indexing.reports.contexts import build_context
from graphrag_pipeline.indexing.reports.records import GraphRecords
from graphrag_pipeline.settings.settings import CommunitiesSettings
from graphrag_pipeline.tables import COMMUNITIES
from graphrag_pipeline.text.tokens import count_tokens, count_tokens_each
from graphrag_pipeline_tests.support.corpora.stage_graph import describe, make_graph, read_christmas_carol, shuffled

WORDS = [
    "Scrooge",
    "Bob",
    "ghost",
    "chain",
    "money",
    "42",
    "—",
    "“Bah!”",
    "said,",
    "a",
    '"quoted"',
    "word;",
    "élan",
    "萧炎",
    "🎄",
]
prose = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)

NAMES = [f"NAME {letter}" for letter in "ABCDEFGH"]
graphs = st.builds(
    lambda edges, texts, claims: make_graph(edges, texts, claims),
    st.dictionaries(
        st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda pair: pair[0] < pair[1]),
        prose.map(lambda text: [text]),
        max_size=15,
    ),
    st.fixed_dictionaries({name: prose.map(lambda text: [text]) for name in NAMES}),
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from([*NAMES, "NONE"]), prose), max_size=6, unique=True),
)


def records_of(graph, descriptions=None):
    descriptions = describe(graph) if descriptions is None else descriptions
    return GraphRecords(graph.entities, graph.relationships, graph.covariates, descriptions, count_tokens_each)


def community(level, parent, titles):
    ids = sorted(entity_id(title) for title in titles)
    identity = stable_hash("community", str(level), *ids)
    return {"id": identity, "level": level, "parent_id": parent, "entity_ids": ids, "size": len(ids)}


def tree(*groups):
    """Return communities: one root over the given groups of titles."""
    root = community(0, None, [title for group in groups for title in group])
    children = [community(1, root["id"], group) for group in groups if len(groups) > 1]
    return COMMUNITIES.from_rows([root, *children])


def contexts_of(graph, communities, max_input_tokens, report=None):
    """Return contexts by (level, titles); `report(context)` makes the report of each child."""
    records = records_of(graph)
    found, reports = {}, {}
    for level in iterate_levels(communities, records):
        contexts = [build_context(rows, records, reports, max_input_tokens) for rows in level]
        reports = {context.community_id: (report or short_report)(context) for context in contexts}
        found |= {context.community_id: context for context in contexts}
    return found


def short_report(context):
    cited = context.entities[0].id if context.entities else "0" * 32
    return ChildReport(context.community_id, "Child", f"A summary. [Data: Entities ({cited})]", (("Head", "Text."),))


def root_of(communities, contexts):
    return contexts[
        communities.filter(pa.array([level == 0 for level in communities["level"].to_pylist()]))["id"][0].as_py()
    ]


def titles(records):
    return [record.fields[0] for record in records]


FAMILY = make_graph(
    {
        ("BOB", "TIM"): ["Bob is the father of Tim."],
        ("BOB", "SCROOGE"): ["Bob works for Scrooge."],
        ("FRED", "SCROOGE"): ["Fred is the nephew of Scrooge."],
        ("BOB", "PETER"): ["Bob is the father of Peter."],
    },
    {"BOB": ["Bob is a clerk."], "SCROOGE": ["Scrooge is a miser."], "TIM": ["Tim is a boy."]},
    [("SCROOGE", "NONE", "Scrooge hates Christmas."), ("POTTER", "BOB", "Potter knows Bob."), ("X", "Y", "Unknown.")],
)


def test_everything_that_fits_is_there_by_degree_inside_the_community():
    communities = tree(["BOB", "TIM", "SCROOGE", "FRED", "PETER"])
    context = root_of(communities, contexts_of(FAMILY, communities, 8000))
    assert [record.fields[:2] for record in context.relationships] == [
        ("Bob", "Scrooge"),  # 3 + 2
        ("Bob", "Peter"),  # 3 + 1, before Tim by title
        ("Bob", "Tim"),
        ("Fred", "Scrooge"),  # 1 + 2
    ]
    assert titles(context.entities) == ["Bob", "Scrooge", "Fred", "Peter", "Tim"]
    assert titles(context.claims) == ["POTTER", "Scrooge"]
    assert context.central == ("Bob", "Scrooge", "Fred")


HALL = make_graph(
    {("BOB", "DOOR"): ["Bob sees the door."], ("FRED", "DOOR"): ["Fred knocks."], ("DOOR", "KNOCKER"): ["A knocker."]},
    {"DOOR": ["The door is open."], "KNOCKER": ["The knocker hangs there."]},
)


def test_central_are_names_before_common_nouns():
    everything = tree(["BOB", "DOOR", "FRED", "KNOCKER"])
    context = root_of(everything, contexts_of(HALL, everything, 8000))
    assert context.common_nouns == ("door", "knocker")
    assert context.central == ("Bob", "Fred")
    nouns = tree(["DOOR", "KNOCKER"])
    assert root_of(nouns, contexts_of(HALL, nouns, 8000)).central == ("door", "knocker")


def test_only_relationships_inside_the_community_count():
    """Scrooge's relationships to the outside change nothing in the context of a community without them."""
    communities = COMMUNITIES.from_rows([community(0, None, ["BOB", "TIM"]), community(0, None, ["SCROOGE", "FRED"])])
    contexts = contexts_of(FAMILY, communities, 8000)
    alone = make_graph(
        {("BOB", "TIM"): ["Bob is the father of Tim."]}, {"BOB": ["Bob is a clerk."], "TIM": ["Tim is a boy."]}
    )
    alone = alone._replace(covariates=FAMILY.covariates)
    identity = community(0, None, ["BOB", "TIM"])
    only = contexts_of(alone, COMMUNITIES.from_rows([identity]), 8000)
    assert only[identity["id"]].text == contexts[identity["id"]].text
    assert only[identity["id"]].context_key == contexts[identity["id"]].context_key


def test_the_text_numbers_records_from_1_and_shows_no_id():
    communities = tree(["BOB", "TIM"])
    context = root_of(communities, contexts_of(FAMILY, communities, 8000))
    assert "1,Bob,Tim,Bob is the father of Tim." in context.text
    assert context.numbers["Relationships"] == {relationship_id("BOB", "TIM"): 1}
    assert entity_id("BOB") not in context.text


def test_the_key_covers_the_ids_behind_the_numbers():
    """A claim that moved to another text unit has another id: a report that cites the old id must not be reused."""
    communities = tree(["BOB", "TIM"])
    moved = FAMILY.covariates.set_column(0, FAMILY.covariates.field("id"), pa.array(["1" * 32, "2" * 32, "3" * 32]))
    before = root_of(communities, contexts_of(FAMILY, communities, 8000))
    after = root_of(communities, contexts_of(FAMILY._replace(covariates=moved), communities, 8000))
    assert before.text == after.text
    assert before.context_key != after.context_key


def long_graph():
    texts = {f"A{i}": ["Entity of the first group " + "and more " * 40] for i in range(5)}
    texts |= {f"B{i}": ["Entity of the second group " + "and more " * 20] for i in range(4)}
    edges = {(f"A{i}", f"A{i + 1}"): ["inside the first"] for i in range(4)}
    edges |= {(f"B{i}", f"B{i + 1}"): ["inside the second"] for i in range(3)}
    edges[("A0", "B0")] = ["between the groups"]
    return make_graph(edges, texts), tree([f"A{i}" for i in range(5)], [f"B{i}" for i in range(4)])


def test_over_budget_the_largest_sub_community_is_replaced_by_its_report():
    graph, communities = long_graph()
    context = root_of(communities, contexts_of(graph, communities, 500))
    assert len(context.reports) == 1
    assert context.reports[0].community_id == community(1, None, [f"A{i}" for i in range(5)])["id"]
    assert titles(context.entities) == ["B0", "B1", "B2", "B3"]
    assert ("A0", "B0") in [record.fields[:2] for record in context.relationships]
    assert not any("inside the first" in record.description for record in context.relationships)
    assert (context.n_entities, context.n_relationships) == (9, 8)


def test_reports_in_a_prompt_cite_its_numbers():
    graph, communities = long_graph()
    context = root_of(communities, contexts_of(graph, communities, 500))
    [(cited, number)] = [(i, n) for i, n in context.numbers["Entities"].items() if n == 5]
    assert cited in [entity_id(f"A{i}") for i in range(5)]
    assert f"A summary. [Data: Entities ({number})]" in context.text


def test_with_no_room_at_all_reports_are_short_and_relationships_remain():
    graph, communities = long_graph()
    long_text = "A finding at length. " * 60
    reported = contexts_of(
        graph,
        communities,
        240,
        report=lambda context: ChildReport(context.community_id, "Child", "A summary.", (("Head", long_text),)),
    )
    context = root_of(communities, reported)
    assert [report.findings for report in context.reports] == [(), ()]
    assert [record.fields[:2] for record in context.relationships] == [("A0", "B0")]


@settings(deadline=None)
@given(graphs, st.integers(200, 600))
def test_the_budget_holds_and_every_relationship_that_fits_is_there(graph, max_input_tokens):
    communities = tree(NAMES)
    context = root_of(communities, contexts_of(graph, communities, max_input_tokens))
    spent = count_tokens(context.text)
    assert spent <= max_input_tokens
    shown = {record.id for record in context.relationships}
    listed = {record.id for record in context.entities}
    rows = records_of(graph)
    for i, identity in enumerate(graph.relationships.sort_by("id")["id"].to_pylist()):
        if identity in shown:
            continue
        ends = {int(rows.sources[i]), int(rows.targets[i])}
        missing = [end for end in ends if rows.entity_ids[end].as_py() not in listed]
        texts = [rows.relationships.record(i).fields, *(rows.entities.record(end).fields for end in missing)]
        needed = sum(count_tokens("9," + as_csv(fields)) for fields in texts)
        assert spent + needed + 30 > max_input_tokens  # 30: headers of missing tables


def as_csv(fields):
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(fields)
    return line.getvalue()


@settings(deadline=None)
@given(graphs, st.integers(200, 600), st.integers(0, 99))
def test_row_order_does_not_matter(graph, max_input_tokens, seed):
    communities = detect_communities(graph.entities, graph.relationships, CommunitiesSettings(max_cluster_size=3))
    mixed = type(graph)(*(shuffled(table, seed) for table in graph))
    assert contexts_of(mixed, shuffled(communities, seed), max_input_tokens) == contexts_of(
        graph, communities, max_input_tokens
    )


@pytest.mark.parametrize("max_input_tokens", [200, 1000, 8000])
def test_a_real_graph_stays_within_budget(max_input_tokens):
    graph = read_christmas_carol()
    communities = detect_communities(graph.entities, graph.relationships, CommunitiesSettings())
    contexts = contexts_of(graph, communities, max_input_tokens)
    assert len(contexts) == communities.num_rows
    assert max(count_tokens_each([context.text for context in contexts.values()])) <= max_input_tokens
    if max_input_tokens < 8000:
        assert any(context.reports for context in contexts.values())
