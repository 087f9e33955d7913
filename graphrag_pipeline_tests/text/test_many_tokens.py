"""Texts that are counted together have the counts of texts that are counted one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.text import many_tokens, tokens
from graphrag_pipeline.text.tokens import count_tokens, count_tokens_each

odd_texts = st.text(st.sampled_from("ab ,.\n\t\u00a0\u3000\u6f22\u00e9<|>1"), max_size=20)


@given(st.lists(odd_texts, max_size=8), st.integers(1, 40))
def test_many_texts_have_the_counts_of_each_alone(texts: list[str], max_characters: int) -> None:
    alone = [count_tokens(text) for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "MANY_TEXTS", 1)
        patch.setattr(many_tokens, "MAX_CHARACTERS", max_characters)
        assert count_tokens_each(texts) == alone


def test_long_texts_tables_and_surrogates_are_counted_beside_many_others() -> None:
    texts = [
        *(f"Scrooge met ghost {n} at {n} o'clock." for n in range(600)),
        "fog " * 20_000,
        "x" * 60_000,
        ",a,b c,d",
        "",
        " ",
        "a\ud800 b",
    ]
    assert count_tokens_each(texts) == [count_tokens(text) for text in texts]
    assert count_tokens_each(texts[:-1]) == [count_tokens(text) for text in texts[:-1]]
