""""""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.selection import pagerank
from graphrag_pipeline.query.selection.graph_ranking import rank_with_graph
from graphrag_pipeline.query.selection.hybrid_ranking import rank_text_units
from graphrag_pipeline.query.selection.pagerank import score_relations
from graphrag_pipeline_tests.support.roots import open_built

CAST = "Blood Street is a film directed by Leo Fong, written by Ann Lee and starring Bob Ray and Richard Norton."


def score(text, words, *names):
    places = [(text, text.index(name), text.index(name) + len(name)) for name in names]
    return score_relations(words, places)


def test_the_words_beside_a_name_separate_the_director_from_writer_and_actors():
    scores = score(CAST, ["director", "born"], "Leo Fong", "Ann Lee", "Bob Ray", "Richard Norton")
    assert np.argmax(scores) == 0
    assert scores[0] > 1.2 * scores[1:].max()


def test_a_synonym_matches():
    text = "She married Min Dikkha and was a pupil of Saw Yan."
    husband, teacher = score(text, ["husband"], "Min Dikkha", "Saw Yan")
    assert husband > 0.7 > teacher


def test_words_of_another_sentence_do_not_count():
    text = "He was a director. Ann Lee came."
    assert score(text, ["director"], "Ann Lee")[0] < 0.3


def test_without_words_or_places_the_score_is_zero():
    assert score(CAST, [], "Leo Fong").tolist() == [0.0]
    assert score_relations(["director"], []).tolist() == []
    assert score("Leo Fong", ["director"], "Leo Fong").tolist() == [0.0]


@given(st.text("abC -'.!?\n\t9_。é", max_size=300), st.data())
def test_the_sides_of_a_name_are_the_nearest_words_of_its_sentence(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    sentence_end, word = re.compile(r"[.!?。！？]\s|\n"), re.compile(r"[^\W\d_]+(?:['\u2019\-][^\W\d_]+)*")
    before = sentence_end.split(text[max(0, start - pagerank.MAX_CHARS) : start])[-1]
    after = sentence_end.split(text[end : end + pagerank.MAX_CHARS])[0]
    sides = (reversed(word.findall(before)), word.findall(after))
    expected = [[*itertools.islice(filter(pagerank._is_content_word, side), pagerank.N_WORDS)] for side in sides]
    assert [*pagerank._read_sides(text, text[::-1], start, end)] == expected


FILMS = {
    "Blood Street": "Blood Street is a 1988 action film directed by Leo Fong and starring Richard Norton. It was shot "
    "in Manila.",
    "Leo Fong": "Leo Fong was a Chinese American actor, filmmaker and boxer. He was born in Canton.",
    "Richard Norton": "Richard Norton is an Australian actor and martial artist. He was born in Melbourne.",
    "Naked Tango": "Naked Tango is a 1990 drama film directed by Leonard Schrader. It was filmed in Buenos Aires.",
    "Leonard Schrader": "Leonard Schrader was an American screenwriter. He was born in Michigan.",
    "The Drill Hall": "The Drill Hall is a film about the director of a school in a street of London.",
    "Canton": "Canton is a city in China. Its old name is Kwangchow.",
}


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> GraphIndex:
    documents = {f"{title}.csv": f'id,title,text\n1,{title},"{text}"\n' for title, text in FILMS.items()}
    return open_built(tmp_path_factory.mktemp("films") / "root", documents)


def ranked_titles(index, question, **limits):
    ranked = rank_text_units(index, question, 30)
    rows = index.snapshot.rows_of("text_units", [unit_id for unit_id, _ in ranked]).tolist()
    found = list(zip(rows, [score for _, score in ranked], strict=True))
    rows, scores = rank_with_graph(index, index.names.take_apart(question), found, **limits)
    assert scores.tolist() == sorted(scores, reverse=True)
    ids = [record["document_id"] for record in index.snapshot.take("text_units", rows, ["document_id"])]
    documents = index.documents(ids)
    return [documents[document_id][0] for document_id in ids]


def test_a_question_about_the_director_leads_from_the_film_to_its_director_not_to_its_actor(films):
    found = ranked_titles(films, "Where was the director of film Blood Street born?")
    assert found[:2] == ["Blood Street", "Leo Fong"]


def test_another_relation_leads_elsewhere(films):
    found = ranked_titles(films, "Where was the actor starring in film Blood Street born?")
    assert found[:2] == ["Blood Street", "Richard Norton"]


def test_a_comparison_finds_both_films_and_their_directors(films):
    found = ranked_titles(films, "Do the films Blood Street and Naked Tango have directors of the same country?")
    assert set(found[:2]) == {"Blood Street", "Naked Tango"}
    assert {"Leo Fong", "Leonard Schrader"} <= set(found[:4])


def test_local_pagerank_ranks_like_full_pagerank(films):
    for question in ("Where was the director of film Blood Street born?", "Was Leo Fong or Leonard Schrader older?"):
        full = ranked_titles(films, question, max_units=None)
        assert sorted(full) == sorted(FILMS)
        local = ranked_titles(films, question, max_units=4)
        assert local[:2] == full[:2]


def test_the_best_of_full_pagerank_are_in_the_neighbourhood(carol):
    for question in (
        "How does Bob Cratchit treat Tiny Tim?",
        "Who was Jacob Marley?",
        "What does Fred say to Scrooge?",
    ):
        ranked = rank_text_units(carol, question, 5)
        rows = carol.snapshot.rows_of("text_units", [unit_id for unit_id, _ in ranked]).tolist()
        found = list(zip(rows, [score for _, score in ranked], strict=True))
        named = carol.names.take_apart(question)
        full, _ = rank_with_graph(carol, named, found, max_units=None)
        local, _ = rank_with_graph(carol, named, found, max_units=30)
        assert len(full) == carol.snapshot.n_rows("text_units")
        assert len(local) < len(full) or len(full) <= 30
        assert set(local[:5].tolist()) == set(full[:5].tolist())


def test_without_a_named_entity_the_order_is_that_of_basic_search(films):
    question = "where is the old drill?"
    ranked = rank_text_units(films, question, 30)
    rows = films.snapshot.rows_of("text_units", [unit_id for unit_id, _ in ranked]).tolist()
    named = films.names.take_apart(question)
    assert not named.names
    found, _ = rank_with_graph(films, named, list(zip(rows, [score for _, score in ranked], strict=True)))
    assert found.tolist() == rows


def test_without_seeds_no_text_unit_is_ranked(films):
    rows, scores = rank_with_graph(films, films.names.take_apart("!!!"), [])
    assert len(rows) == len(scores) == 0


@st.composite
def edges(draw):
    pairs = draw(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1))
    weights = draw(st.lists(st.floats(0.1, 5), min_size=len(pairs), max_size=len(pairs)))
    units, entities = np.array(sorted(pairs)).T
    return units, entities, np.array(weights)


@given(edges=edges(), start=st.integers(0, 11))
def test_power_iteration_approaches_the_exact_personalised_pagerank(edges, start):
    units, entities, weights = edges
    to_unit = weights / np.bincount(entities, weights, minlength=6)[entities]
    to_entity = weights / np.bincount(units, weights, minlength=6)[units]
    starts = np.eye(12)[start]
    transition = np.zeros((12, 12))
    transition[units, 6 + entities] = to_unit
    transition[6 + entities, units] = to_entity
    exact = np.linalg.solve(np.eye(12) - pagerank.DAMPING * transition, (1 - pagerank.DAMPING) * starts)
    computed = pagerank.run_pagerank(units, entities, to_unit, to_entity, starts[:6], starts[6:])
    assert np.allclose(computed, exact[:6], atol=pagerank.DAMPING**pagerank.N_STEPS)
