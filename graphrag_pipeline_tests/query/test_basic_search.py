import numpy as np

from graphrag_pipeline.query import basic_search
from graphrag_pipeline.settings import BasicSearchSettings


def test_the_text_unit_with_the_words_comes_first(carol):
    context = basic_search.select_basic_context(carol, "Ignorance and Want", BasicSearchSettings(top_k=3))
    assert "This boy is Ignorance" in context.text_units[0].text
    scores = [unit.score for unit in context.text_units]
    assert scores == sorted(scores, reverse=True)
    assert not context.entities


def test_words_decide_before_vectors():
    by_words, by_vector = np.array([9.0, 2.0, 0.0]), np.array([0.1, 0.2, 0.3])
    assert basic_search.fuse(by_words, by_vector).argmax() == 0
    assert basic_search.fuse(np.zeros(3), by_vector).argmax() == 2


def test_a_question_without_words_finds_nothing(carol):
    assert basic_search.select_basic_context(carol, "\U0001f384", BasicSearchSettings()).is_empty


def test_the_budget_holds(carol):
    context = basic_search.select_basic_context(carol, "Scrooge", BasicSearchSettings(max_context_tokens=2500))
    assert 1 <= len(context.text_units) <= 2
