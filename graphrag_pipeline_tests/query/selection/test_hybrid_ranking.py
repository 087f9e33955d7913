"""Text units ranked by words and vectors: words decide, in any script."""

from __future__ import annotations

import numpy as np
import pytest

from graphrag_pipeline.query.selection.hybrid_ranking import REPEAT, fuse, searched_words, weigh_repeats


def test_words_decide_before_vectors() -> None:
    by_words, by_window = np.array([9.0, 2.0, 0.0]), np.array([0.1, 0.2, 0.3])
    assert fuse(by_words, by_window).argmax() == 0
    assert fuse(np.zeros(3), by_window).argmax() == 2


def test_a_further_text_unit_of_a_document_counts_less_than_the_first_of_another() -> None:
    scores = weigh_repeats(np.array([1.0, 0.9, 0.8, 0.7]), ["long", "long", "short", "long"])
    assert scores.tolist() == pytest.approx([1.0, 0.9 * REPEAT, 0.8, 0.7 * REPEAT])
    assert weigh_repeats(np.array([1.0, 0.9]), ["", ""]).tolist() == [1.0, 0.9]  # an import without documents


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Where did the composer of Billy Elliot die?", "composer Billy Elliot die"),
        ("What is Scrooge's nephew doing?", "Scrooge's nephew"),
        ("What is the name of the play on the list?", "name play list"),
        ("Wo spielt das Stück?", "spielt Stück"),
        ("Who are The Who?", "Who are The Who?"),
        ("萧炎是谁？", "萧炎是谁"),
    ],
)
def test_stop_words_are_not_searched_for_unless_nothing_else_is_left(question: str, words: str) -> None:
    assert searched_words(question) == words
