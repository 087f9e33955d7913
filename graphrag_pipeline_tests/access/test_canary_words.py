"""The words of canaries: an answer that holds one names exactly one canary."""

from __future__ import annotations

import pytest

from graphrag_pipeline_tests.support.canaries import MAX_CANARIES, make_canaries, open_rows


@pytest.mark.parametrize("seed", [7, 8])
def test_no_word_of_a_canary_is_in_another_one_or_in_an_open_text(seed):
    words = [word.lower() for one in make_canaries(300, seed) for word in one.words]
    opened = "\n".join(str(row) for row in open_rows(300)).lower()
    text = "\n".join(words)
    assert [word for word in words if text.count(word) != 1 or word in opened] == []


def test_the_same_seed_gives_the_same_canaries():
    assert make_canaries(3) == make_canaries(3) != make_canaries(3, seed=8)


def test_more_canaries_than_there_are_words_for_are_refused():
    with pytest.raises(ValueError, match=f"at most {MAX_CANARIES:,}"):
        make_canaries(MAX_CANARIES + 1)
