import pytest

from graphrag_pipeline.indexing.extraction.names.terms.word_forms import (
    is_compared,
    is_technical,
    may_be_adjective,
    may_be_noun,
    may_be_verb,
    singular_of,
)


@pytest.mark.parametrize(
    ("word", "expected"),
    [("tumour", True), ("started", False), ("longer", False), ("seed", True), ("earliest", False), ("scanner", True),
     ("overridden", False), ("unfrozen", False), ("garden", True)],
)  # fmt: skip
def test_participles_and_comparatives_are_no_nouns(word: str, expected: bool) -> None:
    assert may_be_noun(word) is expected


@pytest.mark.parametrize(
    ("word", "is_adjective", "is_verb"),
    [
        ("insecure", True, False),
        ("invalid", True, False),
        ("ventricular", True, False),
        ("social", True, False),
        ("install", False, True),
        ("employment", False, False),
        ("match", False, True),
        ("server", False, False),
    ],
)
def test_a_word_may_be_an_adjective_or_a_verb(word: str, is_adjective: bool, is_verb: bool) -> None:
    assert (may_be_adjective(word), may_be_verb(word)) == (is_adjective, is_verb)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("responses", None),
        ("biopsies", "biopsy"),
        ("nodes", "node"),
        ("patches", "patch"),
        ("physics", None),
        ("series", None),
        ("innings", None),
    ],
)
def test_plurals_have_a_singular_that_is_known(word: str, expected: str | None) -> None:
    assert singular_of(word, {"biopsy", "node", "patch", "physic", "serie", "respons", "inning"}) == expected


def test_comparatives_are_known_by_their_other_forms() -> None:
    assert is_compared("older") and is_compared("newest")
    assert not (is_compared("border") or is_compared("forest") or is_compared("user"))


def test_a_verb_made_of_a_known_word_is_not_technical() -> None:
    assert is_technical("verapamil") and not is_technical("lengthen")
