from __future__ import annotations

import time

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_pipeline.engines.embedded import descriptions as summarized_descriptions
from graphrag_pipeline.engines.embedded.descriptions import summarize_descriptions
from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.settings.settings import DescriptionsSettings
from graphrag_pipeline.tables import DESCRIPTIONS
from graphrag_pipeline_tests.support.corpora.stage_graph import make_graph, read_christmas_carol, shuffled
from graphrag_pipeline_tests.support.models.hashing_embeddings import HashingEmbeddings

SETTINGS = DescriptionsSettings(max_sentences=2)

texts = st.lists(
    st.builds(
        "{} {} {}.".format,
        st.sampled_from(["Scrooge", "The old miser", "He", "Uncle Scrooge"]),
        st.sampled_from(["is counting", "refuses to give", "sees at night"]),
        st.sampled_from(["all the money", "a ghost in chains", "coal for the fire"]),
    ),
    max_size=6,
)


def summarize(graph, known=None, embedder=None, settings=SETTINGS):
    embedder = embedder or HashingEmbeddings()
    return summarize_descriptions(graph.entities, graph.relationships, settings, embedder, known)


def description_of(graph, title, **options):
    keys = dict(zip(graph.entities["title"].to_pylist(), graph.entities["description_key"].to_pylist(), strict=True))
    rows = {row["description_key"]: row for row in summarize(graph, **options).to_pylist()}
    return rows[keys[title]]["description"]


def test_none_is_empty_and_one_is_verbatim():
    graph = make_graph({("BOB", "TIM"): []}, {"BOB": ["  clerk\nof Scrooge "]})
    assert description_of(graph, "TIM") == ""
    assert description_of(graph, "BOB") == "  clerk\nof Scrooge "


def test_several_become_the_most_central_sentences():
    graph = make_graph(
        {},
        {
            "SCROOGE": [
                "Scrooge is a miser who keeps an office in London.",
                "Scrooge keeps a cold office in London.",
                "And he shut the door.",
                "STAVE ONE",
            ]
        },
    )
    assert description_of(graph, "SCROOGE").startswith("Scrooge is a miser who keeps an office in London.")
    assert "STAVE" not in description_of(graph, "SCROOGE")


@pytest.mark.parametrize(
    ("sentence", "rest"),
    [
        ("The Bank of England is old.", " is old."),
        ("Michael O'Brien was there.", " was there."),
        ("Yesterday Bank's clerk left.", "'s clerk left."),
        ("Bank, England and others met.", ", England and others met."),
    ],
)
def test_a_name_ends_where_its_words_end(sentence, rest):
    words = frozenset({"bank", "of", "england", "michael", "o", "brien"})
    assert sentence[summarized_descriptions._find_name_end(sentence, words) :] == rest


@pytest.mark.parametrize("sentence", ["He left.", "Of course.", "Nobody who was there that evening saw Michael."])
def test_a_name_that_comes_late_or_not_at_all_is_not_found(sentence):
    assert summarized_descriptions._find_name_end(sentence, frozenset({"of", "michael"})) is None


def test_a_repeated_sentence_is_kept_once():
    graph = make_graph({}, {"BOB": ["Bob is a clerk of Scrooge.", "BOB is a clerk of Scrooge!"]})
    assert description_of(graph, "BOB") in ("Bob is a clerk of Scrooge.", "BOB is a clerk of Scrooge!")


def test_fragments_are_kept_only_without_sentences():
    assert description_of(make_graph({}, {"BOB": ["clerk", "father"]}), "BOB") == "father. clerk."


def test_rows_are_one_per_key_and_count_their_descriptions():
    graph = make_graph({("BOB", "TIM"): ["Bob is the father of Tim.", "Tim is the son of Bob."]})
    rows = summarize(graph)
    assert rows.schema == DESCRIPTIONS.schema
    assert sorted(rows["kind"].to_pylist()) == ["entity", "entity", "relationship"]
    assert sorted(rows["n_descriptions"].to_pylist()) == [0, 0, 2]


def test_an_empty_graph_has_no_descriptions():
    assert summarize(make_graph({})).equals(DESCRIPTIONS.empty())


@settings(deadline=None)
@given(texts, texts, st.integers(0, 9))
def test_row_order_does_not_matter(first, second, seed):
    graph = make_graph({("SCROOGE", "BOB"): second}, {"SCROOGE": first})
    mixed = graph._replace(entities=shuffled(graph.entities, seed), relationships=shuffled(graph.relationships, seed))
    assert summarize(graph).equals(summarize(mixed))


@settings(deadline=None)
@given(texts, texts)
def test_known_rows_are_reused_and_equal_fresh_ones(first, second):
    old = make_graph({("SCROOGE", "BOB"): second}, {"SCROOGE": first})
    new = make_graph({("SCROOGE", "BOB"): second}, {"SCROOGE": [*first, "Scrooge changes for good."]})
    assert summarize(new, known=summarize(old)).equals(summarize(new))
    again = HashingEmbeddings()
    summarize(old, known=summarize(old), embedder=again)
    assert again.n_texts == 0


def test_a_known_row_is_taken_unchanged():
    graph = make_graph({}, {"BOB": ["Bob is a clerk."]})
    rows = summarize(graph)
    marked = rows.set_column(rows.schema.get_field_index("description"), rows.field("description"), pa.array(["known"]))
    assert summarize(graph, known=marked).equals(marked)


@pytest.mark.parametrize("size", [1, 3])
def test_slices_do_not_change_the_result(monkeypatch, size):
    graph = read_christmas_carol()
    whole = summarize(graph)
    monkeypatch.setattr(summarized_descriptions, "SLICE_ROWS", size * 100)
    monkeypatch.setattr(summarized_descriptions, "SLICE_SENTENCES", size)
    assert summarize(graph).equals(whole)


def test_a_hub_with_two_thousand_descriptions_is_fast():
    embedder = load_static_embeddings()
    hub = [f"Scrooge meets guest {i} and gives him {i * 3} pounds of turkey." for i in range(2000)]
    graph = make_graph({}, {"SCROOGE": [*hub, "Scrooge is a miser who learns to give."]})
    start = time.process_time()
    text = description_of(graph, "SCROOGE", embedder=embedder, settings=DescriptionsSettings())
    assert time.process_time() - start < 5
    assert 1 <= text.count(".") <= 5


def test_a_real_graph_has_its_descriptions():
    graph = read_christmas_carol()
    rows = summarize(graph, embedder=load_static_embeddings(), settings=DescriptionsSettings())
    assert rows.num_rows == graph.entities.num_rows + graph.relationships.num_rows
    assert all(bool(row["description"]) == (row["n_descriptions"] > 0) for row in rows.to_pylist())
