import numpy as np

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
