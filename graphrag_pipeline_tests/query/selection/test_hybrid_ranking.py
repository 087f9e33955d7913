"""Text units ranked by words and vectors: words decide, in any script."""

from __future__ import annotations

import numpy as np
import pytest

from graphrag_pipeline.query.selection.hybrid_ranking import (
    N_BY_VECTOR,
    REPEAT,
    fuse,
    rank_text_units,
    searched_words,
    weigh_repeats,
)
from graphrag_pipeline_tests.support.corpora.retrieval_questions import ask_for_documents, write_articles_apart
from graphrag_pipeline_tests.support.roots import open_built


def test_words_decide_before_vectors() -> None:
    by_words, by_window = np.array([9.0, 2.0, 0.0]), np.array([0.1, 0.2, 0.3])
    assert fuse(by_words, by_window).argmax() == 0
    assert fuse(np.zeros(3), by_window).argmax() == 2


def test_a_further_text_unit_of_a_document_counts_less_than_the_first_of_another() -> None:
    scores = weigh_repeats(np.array([1.0, 0.9, 0.88, 0.7]), np.array([4, 4, 1, 4]))
    assert scores.tolist() == pytest.approx([1.0, 0.9 * REPEAT, 0.88, 0.7 * REPEAT])
    assert scores[1] < scores[2]
    assert weigh_repeats(np.array([1.0, 0.9]), np.array([-1, -1])).tolist() == [1.0, 0.9]  # an import without documents


def test_a_further_text_unit_that_matches_clearly_better_keeps_its_place() -> None:
    scores = weigh_repeats(np.array([1.0, 0.9, *[0.7] * 50]), np.arange(52).clip(1) - 1)
    assert scores.argsort()[::-1][:2].tolist() == [0, 1]


def test_a_longer_list_begins_with_the_shorter_one(tmp_path) -> None:
    articles = write_articles_apart(2 * N_BY_VECTOR)
    with open_built(tmp_path / "root", {f"{i}.txt": one["text"][:800] for i, one in enumerate(articles)}) as index:
        for asked in ask_for_documents(articles, 20, 1):
            longest = rank_text_units(index, asked.question, 4 * N_BY_VECTOR)
            assert longest
            assert [score for _, score in longest] == sorted((score for _, score in longest), reverse=True)
            for k in (1, 5, N_BY_VECTOR + 5):
                assert rank_text_units(index, asked.question, k) == longest[:k]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Where did the composer of Billy Elliot die?", "composer Billy Elliot die"),
        ("What is Scrooge's nephew doing?", "Scrooge's nephew"),
        ("What is the name of the play on the list?", "name play list"),
        ("Wo spielt das Stück?", "spielt Stück"),
        ("Who are The Who?", "Who are The Who?"),
        ("萧炎是谁？", "萧炎是谁 蕭炎是誰"),
    ],
)
def test_stop_words_are_not_searched_for_unless_nothing_else_is_left(question: str, words: str) -> None:
    assert searched_words(question) == words
