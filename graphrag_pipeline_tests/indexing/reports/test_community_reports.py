from __future__ import annotations

from functools import partial

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.citations import parse_citations, split_cited, strip_citations
from graphrag_pipeline.engines.embedded.reports import write_reports
from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.identity import entity_id, relationship_id
from graphrag_pipeline.indexing.communities.detection import detect_communities
from graphrag_pipeline.indexing.reports.community_reports import report_communities
from graphrag_pipeline.indexing.reports.evidence import EarlierReports
from graphrag_pipeline.settings.settings import CommunitiesSettings, ReportsSettings
from graphrag_pipeline.tables import COMMUNITY_REPORTS
from graphrag_pipeline.text.extractive import sentences_of
from graphrag_pipeline.text.sentence_forms import is_sentence
from graphrag_pipeline_tests.support.corpora.random_graphs import NAMES, described_graphs
from graphrag_pipeline_tests.support.corpora.stage_graph import describe, make_graph, read_christmas_carol, shuffled
from graphrag_pipeline_tests.support.models.hashing_embeddings import HashingEmbeddings


def communities_of(graph, max_cluster_size=3):
    return detect_communities(
        graph.entities, graph.relationships, CommunitiesSettings(max_cluster_size=max_cluster_size)
    )


def report(graph, options=None, known=None, embedder=None, communities=None):
    communities = communities_of(graph) if communities is None else communities
    options = options or ReportsSettings()
    return report_communities(
        communities,
        *graph,
        describe(graph),
        options,
        partial(write_reports, settings=options, embedder=embedder or HashingEmbeddings()),
        EarlierReports(known),
    )


FAMILY = make_graph(
    {
        ("BOB CRATCHIT", "TINY TIM"): ["Bob Cratchit carries his son Tiny Tim on his shoulder."],
        ("BOB CRATCHIT", "SCROOGE"): ["Bob Cratchit works as a clerk for Scrooge in a cold office."],
        ("SCROOGE", "TINY TIM"): ["Scrooge becomes a second father to Tiny Tim at the end."],
    },
    {
        "SCROOGE": ["Scrooge is an old miser who learns to keep Christmas.", "STAVE ONE"],
        "BOB CRATCHIT": ["Bob Cratchit is a poor clerk with a large family."],
        "TINY TIM": ["Tiny Tim is a lame boy who walks with a crutch."],
    },
    [("SCROOGE", "NONE", "Scrooge calls Christmas a humbug in front of his nephew.")],
)


def the_report(graph, **options):
    [row] = report(graph, communities=communities_of(graph, max_cluster_size=10), **options).to_pylist()
    return row


def test_a_report_names_its_central_entities_and_cites_every_sentence():
    row = the_report(FAMILY)
    assert row["title"] == "Bob Cratchit, Scrooge and Tiny Tim"
    assert not row["is_verbatim"]
    for text in [row["summary"], *(finding["explanation"] for finding in row["findings"])]:
        assert all(citation for _, citation in split_cited(text))
    known_ids = {entity_id(t) for t in NAMES} | {relationship_id(a, b) for a in NAMES for b in NAMES}
    known_ids |= set(FAMILY.covariates["id"].to_pylist())
    cited = [i for f in row["findings"] for _, ids in parse_citations(f["explanation"]) for i in ids]
    assert set(cited) <= known_ids


def test_a_report_repeats_no_sentence_and_quotes_no_heading():
    row = the_report(FAMILY)
    texts = [row["summary"], *(finding["explanation"] for finding in row["findings"])]
    said = [sentence for text in texts for sentence in sentences_of(strip_citations(text))]
    assert len(said) == len(set(said)) == 7
    assert all(is_sentence(sentence) for sentence in said)
    assert len({finding["summary"] for finding in row["findings"]}) == len(row["findings"]) == 5


SAID_OF = {
    "BOB CRATCHIT": "Bob Cratchit copies letters in a cold cell and fears Scrooge a little.",
    "FRED": "Fred asks his uncle Scrooge to dinner every single Christmas in spite of all.",
    "MARTHA": "Martha hears from her mother that Scrooge pays very badly for hard work.",
    "PETER": "Peter reads aloud from the book that Scrooge once gave him as a present.",
    "TINY TIM": "Tiny Tim blesses Scrooge and all the world from a stool beside the hearth.",
    "MARLEY": "Marley warns Scrooge of three spirits and drags a long iron chain behind him.",
    "BELLE": "Belle gives Scrooge his ring back, since another idol has displaced her.",
    "FAN": "Fan comes to school in a coach to bring Scrooge home for the holidays.",
    "DICK": "Dick clears the warehouse with Scrooge so that there is room to dance.",
}


def test_findings_about_common_nouns_or_of_talk_only_fill_up():
    people = {("SCROOGE", name): [text] for name, text in SAID_OF.items()}
    others = {
        ("DOOR", "SCROOGE"): ["Scrooge looks at the old door of his house for a long time that night."],
        ("JOE", "SCROOGE"): ["'You are welcome to my parlour, I am sure, says old Joe to Scrooge."],
    }
    the_door = {"DOOR": ["The door is open."]}
    headings = {f["summary"] for f in the_report(make_graph(people | others, the_door))["findings"]}
    assert len(headings) >= 5
    assert not headings & {"Scrooge and door", "Door", "Scrooge and Joe"}
    row = the_report(make_graph({("SCROOGE", "MARLEY"): [SAID_OF["MARLEY"]]} | others, the_door))
    assert {f["summary"] for f in row["findings"]} & {"Scrooge and door", "Scrooge and Joe"}
    assert row["title"] == "Scrooge, Joe and Marley"


def test_the_rank_grows_with_the_community_and_is_explained():
    small = the_report(make_graph({("A", "B"): ["A meets B in the old house."]}))
    assert 0 < small["rank"] < the_report(FAMILY)["rank"] <= 10
    assert the_report(FAMILY)["rating_explanation"] == (
        "By size: 3 entities, 3 relationships and 1 claims inside the community, 10 x ln(1 + 7) / ln(1 + 10000)."
    )


def test_a_small_community_has_its_descriptions_unchanged():
    graph = make_graph(
        {("BOB CRATCHIT", "TINY TIM"): ["father and son"]},
        {"BOB CRATCHIT": ["Bob Cratchit is a clerk."]},
        [("TINY TIM", "NONE", "Tim walks with a crutch.")],
    )
    row = the_report(graph)
    assert row["is_verbatim"]
    assert row["title"] == "Bob Cratchit and Tiny Tim"
    assert row["summary"] == f"Bob Cratchit is a clerk. [Data: Entities ({entity_id('BOB CRATCHIT')})]"
    assert [(f["summary"], strip_citations(f["explanation"])) for f in row["findings"]] == [
        ("Bob Cratchit and Tiny Tim", "father and son."),
        ("Tiny Tim", "Tim walks with a crutch."),
    ]


def findings_of(row):
    return [strip_citations(finding["explanation"]) for finding in row["findings"]]


def test_a_small_community_of_five_sentences_has_five_findings():
    text = ["Marley was dead, to begin with.", "The firm of Marley stood in a narrow court.", SAID_OF["MARLEY"]]
    more = ["Nobody in the city mourned for Marley at all.", "The chain of Marley was made of cash-boxes and keys."]
    row = the_report(make_graph({}, {"MARLEY": text + more}))
    assert row["is_verbatim"]
    assert sorted(findings_of(row)) == sorted(text + more)
    assert {finding["summary"] for finding in row["findings"]} == {"Marley"}


def test_a_community_of_one_sentence_has_it_as_its_finding():
    graph = make_graph({("A", "B"): ["A meets B in the old house."]}, {"A": ["A meets B in the old house."]})
    row = the_report(graph)
    assert [f["summary"] for f in row["findings"]] == ["A and B"]
    assert findings_of(row) == ["A meets B in the old house."] == [strip_citations(row["summary"])]


def test_findings_under_few_names_are_divided_until_there_are_five():
    said = [
        f"The ghost of Marley {does}"
        for does in (
            "drags a heavy chain of keys.", "wears a kerchief around its jaws.", "warns of three visitors at night.",
            "floats out through the open window.", "shakes the bed with a frightful cry.", "sits down by the old fire.",
            "comes up from the cellar stairs.",
        )
    ]  # fmt: skip
    row = the_report(make_graph({("MARLEY", "SCROOGE"): said[:3], ("MARLEY", "TINY TIM"): said[3:]}))
    findings = findings_of(row)
    assert len(findings) >= 5
    sentences_said = [sentence for text in findings for sentence in sentences_of(text)]
    assert len(sentences_said) == len(set(sentences_said))


def test_a_bare_exclamation_is_quoted_only_without_other_sentences():
    cry = "'I'll give you Mr. Scrooge, the Founder of the Feast!'"
    only = the_report(make_graph({}, {"SCROOGE": [cry]}))
    assert findings_of(only) == [cry]
    pair = {("BOB CRATCHIT", "SCROOGE"): [cry, SAID_OF["MARTHA"]]}
    for more in ({}, {("FRED", "SCROOGE"): [SAID_OF["FRED"]]}):
        row = the_report(make_graph(pair | more))
        assert row["is_verbatim"] == (not more)
        assert not [text for text in [row["summary"], *findings_of(row)] if "Founder" in text]


def test_a_community_without_any_text_still_has_a_report():
    [row] = report(make_graph({}, {"MARLEY": []})).to_pylist()
    assert (row["title"], row["summary"], row["findings"]) == ("Marley", "Marley", [])
    row = the_report(make_graph({("A", "B"): [], ("B", "C"): []}))
    assert (row["title"], row["findings"], row["is_verbatim"]) == ("B, A and C", [], False)


def test_an_empty_index_has_no_reports():
    assert report(make_graph({})).equals(COMMUNITY_REPORTS.empty())


@given(described_graphs, st.integers(0, 99), st.sampled_from([200, 8000]))
def test_row_order_does_not_matter(graph, seed, max_input_tokens):
    options = ReportsSettings(max_input_tokens=max_input_tokens)
    communities = communities_of(graph)
    fresh = report(graph, options, communities=communities)
    assert fresh["community_id"].to_pylist() == communities["id"].to_pylist()
    assert report(type(graph)(*(shuffled(table, seed) for table in graph)), options).equals(fresh)


@given(described_graphs, described_graphs)
def test_known_reports_are_reused_and_equal_fresh_ones(old, new):
    known = report(old)
    assert report(new, known=known).equals(report(new))
    again = HashingEmbeddings()
    assert report(old, known=known, embedder=again).equals(known)
    assert again.n_texts == 0


def test_a_known_report_is_taken_unchanged():
    known = report(FAMILY)
    titles = pa.array(["known"] * known.num_rows)
    marked = known.set_column(known.schema.get_field_index("title"), known.schema.field("title"), titles)
    assert report(FAMILY, known=marked).equals(marked)


def test_reports_reach_their_parents_when_the_budget_is_short():
    graph = read_christmas_carol()
    communities = communities_of(graph, max_cluster_size=10)
    rows = report(graph, ReportsSettings(max_input_tokens=1000), communities=communities).to_pylist()
    cited = {
        entity for row in rows if row["level"] == 0 for _, ids in parse_citations(row["summary"]) for entity in ids
    }
    assert cited


def test_a_real_graph_has_a_report_on_every_community():
    graph = read_christmas_carol()
    communities = communities_of(graph, max_cluster_size=10)
    reports = report(graph, communities=communities, embedder=load_static_embeddings())
    assert reports.schema == COMMUNITY_REPORTS.schema
    assert reports["community_id"].to_pylist() == communities["id"].to_pylist()
    records = {i for table in graph for i in table["id"].to_pylist()} | set(communities["id"].to_pylist())
    for row in reports.to_pylist():
        assert row["title"] and row["summary"]
        assert len(row["findings"]) <= 8 or row["is_verbatim"]
        texts = [row["summary"], *(finding["explanation"] for finding in row["findings"])]
        assert {i for text in texts for _, ids in parse_citations(text) for i in ids} <= records
        if not row["is_verbatim"]:
            assert all(is_sentence(said) for f in row["findings"] for said, _ in split_cited(f["explanation"]))
        assert row["findings"]
        said = [text for f in row["findings"] for text, _ in split_cited(f["explanation"])]
        assert len(said) == len(set(said))
    large = [row for row in reports.to_pylist() if row["rank"] > 3.5]
    assert all(len(row["findings"]) >= 5 for row in large)
