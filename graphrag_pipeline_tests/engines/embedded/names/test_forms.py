import pytest

from graphrag_pipeline.engines.embedded.names.forms import link_forms, vote_types


@pytest.mark.parametrize(
    ("types", "acronyms", "expected"),
    [
        ({"Ebenezer Scrooge": "PERSON", "Mr. Scrooge": "PERSON", "Scrooge": "GEO"}, {},
         {"Mr. Scrooge": "Ebenezer Scrooge", "Scrooge": "Ebenezer Scrooge"}),
        ({"Bob Cratchit": "PERSON", "Mrs. Cratchit": "PERSON", "Cratchit": "PERSON"}, {}, {"Cratchit": "Bob Cratchit"}),
        ({"Priya Raman": "PERSON", "Ms Priya Raman": "PERSON", "Ms Raman": "PERSON"}, {},
         {"Ms Priya Raman": "Priya Raman", "Ms Raman": "Priya Raman"}),
        ({"Adela Lincoln": "PERSON", "Nancy Lincoln": "PERSON", "Lincoln": "PERSON"}, {}, {}),
        ({"Mr. Smith": "PERSON", "Smith": "PERSON"}, {}, {"Mr. Smith": "Smith"}),
        ({"Apple Inc.": "ORGANIZATION", "Apple": "ORGANIZATION"}, {}, {"Apple Inc.": "Apple"}),
        ({"Federal Trade Commission": "ORGANIZATION", "FTC": "ORGANIZATION"}, {}, {"FTC": "Federal Trade Commission"}),
        ({"FDA": "ORGANIZATION", "FDA Approval": "CONCEPT"}, {}, {}),
        ({"CT": "CONCEPT", "computed tomography": "CONCEPT"}, {"CT": "computed tomography"},
         {"CT": "computed tomography"}),
        ({"NASA": "ORGANIZATION", "Nasa": "ORGANIZATION"}, {}, {"NASA": "Nasa"}),
    ],
)  # fmt: skip
def test_forms_are_linked_only_without_doubt(types: dict, acronyms: dict, expected: dict) -> None:
    links = link_forms(dict.fromkeys(types, 1), types, acronyms)
    assert {form: name for form, name in links.items() if form != name} == expected


def test_the_type_is_that_of_most_occurrences_and_of_a_name_before_a_term() -> None:
    links = {"a": "x", "b": "x", "c": "x", "d": "y", "e": "y"}
    types = {"a": "GEO", "b": "PERSON", "c": "UNKNOWN", "d": "CONCEPT", "e": "ORGANIZATION"}
    assert vote_types({"a": 1, "b": 2, "c": 9, "d": 9}, types, links) == {"x": "PERSON", "y": "ORGANIZATION"}
