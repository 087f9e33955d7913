import numpy as np

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.query.question import content_words
from graphrag_pipeline.query.understanding.relevance import make_background, score_relevance

TEXTS = [
    "Marley was dead, to begin with.",
    "Scrooge hired Bob Cratchit as a clerk.",
    "The fog came pouring in at every chink and keyhole.",
    "The turkey was sent to the family in Camden Town.",
]


def score(question, texts=TEXTS):
    embedder = load_static_embeddings()
    words, vectors = [content_words(text) for text in texts], embedder.embed(texts)
    background = make_background(question, embedder.embed, words, vectors)
    return score_relevance(background, words, vectors)


def test_the_text_that_answers_is_the_most_relevant():
    assert int(score("Is Marley dead?").argmax()) == 0
    assert int(score("Who was hired?").argmax()) == 1


def test_a_question_about_something_else_has_no_relevant_text():
    assert score("What is quantum chromodynamics?").max() < 0.3


def test_a_question_without_words_has_none():
    assert not score("\U0001f384").any()


def test_relevance_does_not_depend_on_the_order_of_texts():
    order = [2, 0, 3, 1]
    assert np.array_equal(score("Is Marley dead?")[order], score("Is Marley dead?", [TEXTS[i] for i in order]))


def test_no_text_at_all():
    assert score("Is Marley dead?", []).tolist() == []


def test_a_word_that_all_of_a_few_texts_hold_still_counts():
    few = ["Scrooge hired Bob.", "Scrooge saw Marley.", "Scrooge kept the coal."]
    embedder = load_static_embeddings()
    words, vectors = [content_words(text) for text in few], embedder.embed(few)
    assert make_background("Scrooge", embedder.embed, words, vectors).word_weights["scroog"] > 1
    words, vectors = words * 100, np.tile(vectors, (100, 1))
    assert make_background("Scrooge", embedder.embed, words, vectors).word_weights["scroog"] < 0.1
