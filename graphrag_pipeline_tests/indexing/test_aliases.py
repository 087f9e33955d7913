import pytest

from graphrag_pipeline.indexing.aliases import is_acronym_of, tie_names
from graphrag_pipeline.indexing.names import Name


def tie(*forms: str, text: str = "", **types: str) -> dict[str, str]:
    kinds = {form: types.get(form.replace(" ", "_").replace(".", ""), "PERSON") for form in forms}
    names = [Name(form, max(text.find(form), 0), max(text.find(form), 0) + len(form), 0) for form in forms]
    return tie_names(names, kinds, text)


@pytest.mark.parametrize(
    ("forms", "expected"),
    [
        (["Scrooge", "Mr. Scrooge", "Ebenezer Scrooge", "Ebenezer", "SCROOGE"], {"Ebenezer Scrooge"}),
        (["Marley", "Old Marley", "Mr. Marley"], {"Marley"}),
        (["Mr. Brown"], {"Mr. Brown"}),
        (["Cratchit", "Bob Cratchit", "Peter Cratchit"], {"Cratchit", "Bob Cratchit", "Peter Cratchit"}),
        (["Bob", "Bob Cratchit", "Mrs. Cratchit"], {"Bob Cratchit", "Mrs. Cratchit"}),
        (["Fezziwig", "Mrs. Fezziwig"], {"Fezziwig", "Mrs. Fezziwig"}),
        (["Miss Belinda", "Belinda Cratchit"], {"Belinda Cratchit"}),
        (["Francis", "Pope Francis"], {"Pope Francis"}),
        (["George W. Bush", "George Bush", "Bush"], {"George Bush"}),
        (["George W. Bush", "George H. W. Bush"], {"George W. Bush", "George H. W. Bush"}),
        (["Mr. Scrooge's nephew", "Scrooge's nephew"], {"Scrooge's nephew"}),
        (["Old Trafford"], {"Old Trafford"}),
    ],
)
def test_short_names_go_with_the_only_full_name(forms: list[str], expected: set[str]) -> None:
    assert set(tie(*forms).values()) == expected


def test_acronym_goes_with_the_long_form_that_introduces_it() -> None:
    text = "The World Health Organization (WHO) met."
    forms = {"World Health Organization": "ORGANIZATION", "WHO": "ORGANIZATION"}
    names = [Name("World Health Organization", 4, 29, 0), Name("WHO", 31, 34, 0)]
    assert set(tie_names(names, forms, text).values()) == {"World Health Organization"}


def test_legal_form_is_dropped_where_the_bare_name_is_written() -> None:
    assert tie("Apple Inc", "Apple", Apple_Inc="ORGANIZATION", Apple="UNKNOWN")["Apple Inc"] == "Apple"
    assert tie("Acme Inc", Acme_Inc="ORGANIZATION") == {"Acme Inc": "Acme Inc"}


@pytest.mark.parametrize(
    ("short", "long", "expected"),
    [
        ("WHO", "World Health Organization", True),
        ("FBI", "Federal Bureau of Investigation", True),
        ("DoJ", "Department of Justice", True),
        ("WHO", "World Trade Organization", False),
        ("W", "World", False),
    ],
)
def test_acronym_is_the_initials(short: str, long: str, expected: bool) -> None:
    assert is_acronym_of(short, long) is expected
