import numpy as np

from graphrag_pipeline.query.selection.relations import score_relations

CAST = "Blood Street is a film directed by Leo Fong, written by Ann Lee and starring Bob Ray and Richard Norton."


def score(text, words, *names):
    places = [(text, text.index(name), text.index(name) + len(name)) for name in names]
    return score_relations(words, places)


def test_the_words_beside_a_name_tell_a_director_from_writer_and_actors():
    scores = score(CAST, ["director", "born"], "Leo Fong", "Ann Lee", "Bob Ray", "Richard Norton")
    assert np.argmax(scores) == 0
    assert scores[0] > 1.2 * scores[1:].max()


def test_a_synonym_will_do():
    text = "She married Min Dikkha and was a pupil of Saw Yan."
    husband, teacher = score(text, ["husband"], "Min Dikkha", "Saw Yan")
    assert husband > 0.7 > teacher


def test_words_of_another_sentence_do_not_count():
    text = "He was a director. Ann Lee came."
    assert score(text, ["director"], "Ann Lee")[0] < 0.3


def test_nothing_asked_or_nothing_there_scores_nothing():
    assert score(CAST, [], "Leo Fong").tolist() == [0.0]
    assert score_relations(["director"], []).tolist() == []
    assert score("Leo Fong", ["director"], "Leo Fong").tolist() == [0.0]
