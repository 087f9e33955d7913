from graphrag_pipeline.indexing.extraction.names.forms.composites import join_composites
from graphrag_pipeline.indexing.extraction.names.occurrences import Name


def joined(text: str, *forms: str) -> tuple[list[str], dict[str, str]]:
    names = [Name(form, text.index(form), text.index(form) + len(form), 0) for form in forms]
    found, types = join_composites(names, text, [0])
    return [name.form for name in found], types


def test_a_department_of_several_fields_is_one_body() -> None:
    text = "Ask the Department for Environment, Food and Rural Affairs or Ofcom."
    department = "Department for Environment, Food and Rural Affairs"
    found, types = joined(text, "Department for Environment", "Food", "Rural Affairs", "Ofcom")
    assert (found, types) == ([department, "Ofcom"], {department: "ORGANIZATION"})


def test_a_case_at_law_is_one_term() -> None:
    found, types = joined("as in Harkness v Wyre Fishing Company of 1902", "Harkness", "Wyre Fishing Company")
    assert (found, set(types.values())) == (["Harkness v Wyre Fishing Company"], {"CONCEPT"})


def test_two_places_make_one_council_if_it_acts_alone() -> None:
    council = "Westmorland and Furness Council"
    assert joined(f"and {council} agrees.", "Westmorland", "Furness Council")[0] == [council]
    assert joined("and Leeds and Hull Council agree.", "Leeds", "Hull Council")[0] == ["Leeds", "Hull Council"]
