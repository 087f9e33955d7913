"""What the question names besides its verb, which the clause with the answer must have."""

import pytest

from graphrag_pipeline.query.answers.naming.asked_things import read_object
from graphrag_pipeline.query.understanding.asked_verb import read_asked_verb


@pytest.mark.parametrize(
    ("question", "names", "expected"),
    [
        ("Who owns the land of the farm", set(), {"land"}),
        ("Who leads the Labour group on the council", {"labour"}, {"labour", "group"}),
        ("Who paid for the library originally", set(), {"library"}),
        ("Who opposed the show", set(), {"show"}),
        ("Who resigned as mayor of Castellar", {"castellar"}, set()),
    ],
)
def test_the_object_is_the_head_of_the_phrase_behind_the_verb(question, names, expected):
    assert read_object(question, read_asked_verb(question), frozenset(names)) == expected
