"""Words of one family, and words that no answer needs to repeat."""

import pytest

from graphrag_pipeline.query.question import stem
from graphrag_pipeline.query.word_families import family_of, says_little


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("director", "direction", True),
        ("president", "presidency", True),
        ("leader", "leadership", True),
        ("treated", "treatments", True),
        ("stopped", "stop", True),
        ("company", "companion", False),
        ("instrument", "instruct", False),
        ("population", "popular", False),
        ("party", "part", False),
        ("telephone", "telegraph", False),
    ],
)
def test_a_family_shares_its_base(one, other, expected):
    assert (family_of(one) == family_of(other)) is expected


def test_words_of_degree_say_little():
    assert all(says_little(stem(word)) for word in ("main", "important", "involved", "kinds"))
    assert not any(says_little(stem(word)) for word in ("courts", "price", "mayor"))
