"""Words of one family, and words that no answer needs to repeat."""

import pytest

from graphrag_pipeline.query.question import stem
from graphrag_pipeline.query.word_families import (
    family_of,
    is_adverb,
    is_said_by_itself,
    means_same,
    said_by,
    says_little,
)


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
        ("university", "universal", False),
        ("authority", "author", False),
    ],
)
def test_a_family_shares_its_base(one, other, expected):
    assert (family_of(one) == family_of(other)) is expected


def test_adverbs_end_as_such():
    assert all(map(is_adverb, ("originally", "recently", "carefully", "surely")))
    assert not any(map(is_adverb, ("family", "italy", "supply", "july", "butterfly", "assembly", "rally")))


def test_words_of_degree_say_little():
    assert all(says_little(stem(word)) for word in ("main", "important", "involved", "kinds", "reason", "person"))
    assert not any(says_little(stem(word)) for word in ("courts", "price", "mayor"))


@pytest.mark.parametrize(
    ("asked", "said", "expected"),
    [
        ("defeat", "beat", True),
        ("bought", "acquired", True),
        ("heads", "president", True),
        ("heads", "leads", True),
        ("owned", "owner", True),
        ("resignation", "stepped", True),  # a noun for what a verb says
        ("owner", "owns", False),  # a question for the owner does not ask who has a thing
        ("director", "chairman", False),
        ("telephone", "number", False),
    ],
)
def test_a_text_says_a_word_by_its_neighbours(asked, said, expected):
    assert (family_of(said) in said_by(asked)) is expected


def test_only_words_of_the_same_things_mean_the_same():
    assert stem("acquired") in means_same("bought")
    assert stem("sold") not in means_same("bought")  # whom it was bought from
    assert stem("killed") not in means_same("died")


def test_a_birth_is_said_by_its_own_words_and_a_resignation_in_many():
    assert all(map(is_said_by_itself, ("born", "died", "painted", "married")))
    assert not any(map(is_said_by_itself, ("resigned", "caused", "coaches", "telephone")))
