import pytest

from graphrag_pipeline.engines.embedded.names.predicates import find_predicate


@pytest.mark.parametrize(
    ("gap", "expected"),
    [
        (" signed the ", "signed"),
        (" was born in ", "was born in"),
        (" is the capital of ", "is the capital of"),
        (", who married ", "married"),
        (" acquires ", "acquires"),
        (" would\nnever speak to his ", "would never speak to"),
        (" and ", None),
        (", ", None),
        ("'s nephew ", None),
        (" of the ", None),
        (" said that he liked the house where ", "said that he liked the house where"),
        (" said, and then he went to ", None),
        (". He met ", None),
        (" Old ", None),
        ("", None),
    ],
)
def test_verb_phrase_is_the_text_between_if_it_has_a_verb(gap: str, expected: str | None) -> None:
    text = f"Anna{gap}Bob"
    assert find_predicate(text, 4, len(text) - 3) == expected
