import itertools
import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.query.selection import relations
from graphrag_pipeline.query.selection.relations import score_relations

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
    before = sentence_end.split(text[max(0, start - relations.MAX_CHARS) : start])[-1]
    after = sentence_end.split(text[end : end + relations.MAX_CHARS])[0]
    sides = (reversed(word.findall(before)), word.findall(after))
    expected = [[*itertools.islice(filter(relations._is_content_word, side), relations.N_WORDS)] for side in sides]
    assert [*relations._read_sides(text, text[::-1], start, end)] == expected
