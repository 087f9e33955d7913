from graphrag_pipeline.text.given_names import load_given_names


def test_given_names_are_of_many_languages_and_not_words_or_places() -> None:
    _, names = load_given_names()
    assert {"LUDMILA", "AOIFE", "WANJIRU", "ELIŠKA", "TADHG", "IFEOMA", "TEO"} <= names
    assert not {"HOPE", "CARTER", "MADISON", "FLORENCE COUNTY", "NAT", "#", "OF"} & names


def test_women_have_names_that_no_man_has() -> None:
    women, names = load_given_names()
    assert women < names
    assert {"AOIFE", "LUDMILA"} <= women
    assert not {"ANDREA", "SASHA", "KIM", "TADHG"} & women
