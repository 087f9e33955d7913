import pytest

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


def test_two_places_make_one_canal_or_police_force() -> None:
    canal = "Leeds and Liverpool Canal"
    assert joined(f"under the {canal} in May", "Leeds", "Liverpool Canal") == ([canal], {canal: "GEO"})
    police = "Devon and Cornwall Police"
    assert joined(f"{police} are looking", "Devon", "Cornwall Police") == ([police], {police: "ORGANIZATION"})
    assert joined("from Leeds and Liverpool Canal", "Leeds", "Liverpool Canal")[1] == {}
    assert joined("the House and Hull Building Society", "House", "Hull Building Society")[1] == {}


def test_names_that_end_alike_behind_in_are_one_body_each() -> None:
    text = "She judged Yorkshire in Bloom. He came from Kirkby in Bloom."
    names = [Name(form, place, place + len(form), 0) for form in ("Yorkshire", "Kirkby") if (place := text.index(form))]
    names += [Name("Bloom", text.index("Bloom"), text.index("Bloom") + 5, 0), Name("Bloom", 54, 59, 0)]
    names.sort(key=lambda name: name.start)
    assert set(join_composites(names, text, [0])[1]) == {"Yorkshire in Bloom", "Kirkby in Bloom"}
    assert join_composites(names[:2], text, [0])[1] == {}


@pytest.mark.parametrize(
    ("text", "whole", "kind"),
    [
        ("the Saltby and District Drainage Board met", "Saltby and District Drainage Board", "ORGANIZATION"),
        ("by the Suffolk and Norfolk Credit Union now", "Suffolk and Norfolk Credit Union", "ORGANIZATION"),
        ("along the Stour and Orwell Walk today", "Stour and Orwell Walk", "GEO"),
        ("The main contractor, Hollins and Garth, has left", "Hollins and Garth", "ORGANIZATION"),
        ("sold by the auctioneers Anderson and Garland.", "Anderson and Garland", "ORGANIZATION"),
        ("the retailer's lawyers, Crane and Wolstenholme, said", "Crane and Wolstenholme", "ORGANIZATION"),
    ],
)
def test_places_of_one_body_route_or_firm_are_one_name(text: str, whole: str, kind: str) -> None:
    first, _, second = whole.partition(" and ")
    assert joined(text, first, second) == ([whole], {whole: kind})


def test_a_side_belongs_to_the_name_before_in() -> None:
    text = "Great Wendle in Bloom met Anglia in Bloom."
    names = [Name(form, text.index(form), text.index(form) + len(form), 0) for form in ("Wendle", "Anglia")]
    names += [Name("Bloom", text.index("Bloom"), text.index("Bloom") + 5, 0), Name("Bloom", 36, 41, 0)]
    names.sort(key=lambda name: name.start)
    assert set(join_composites(names, text, [0])[1]) == {"Great Wendle in Bloom", "Anglia in Bloom"}


def test_two_places_of_one_title_are_one_name() -> None:
    found, types = joined("the Prince of Thurn and Taxis, who", "Prince of Thurn", "Taxis")
    assert (found, types) == (["Prince of Thurn and Taxis"], {"Prince of Thurn and Taxis": "PERSON"})
    assert joined("the Duke of York and Ann, who", "Duke of York", "Ann")[0] == ["Duke of York", "Ann"]


@pytest.mark.parametrize(
    ("text", "whole", "kind"),
    [
        ("PORT ELLERY, Samoa (Isle News) - The mill fell.", "PORT ELLERY", "GEO"),
        ("ST. VELDA (Isle News) — The mill fell.", "ST. VELDA", "GEO"),
        ("PORT ELLERY, May 4 (Isle News) - The mill fell.", "Isle News", "ORGANIZATION"),
        ("He said that Ostley and Brenwick Council had met.", "Ostley and Brenwick Council", "ORGANIZATION"),
        ("They sued Brambex Foods (Pty) Ltd again.", "Brambex Foods (Pty) Ltd", "ORGANIZATION"),
        ("BRAMBEX FOODS (PTY) LTD, Appellant", "BRAMBEX FOODS (PTY) LTD", "ORGANIZATION"),
    ],
)
def test_datelines_councils_and_firms_in_brackets_are_whole(text: str, whole: str, kind: str) -> None:
    found, types = joined(text)
    assert whole in found
    assert types[whole] == kind


def test_a_list_before_the_council_is_no_part_of_it() -> None:
    assert joined("He met the Ostley Farm and Brenwick Council in May.")[0] == []


def test_a_street_may_have_a_number_and_a_case_a_firm() -> None:
    found, types = joined("He lives on East 78th Street. See Hill Grain Co. v. Lee Road Commission of 1904.")
    assert found == ["East 78th Street", "Hill Grain Co. v. Lee Road Commission"]
    assert set(types.values()) == {"GEO", "CONCEPT"}
    whole = "Ostland (Minister of Ports) v. Mill & Sawmill Union"
    assert joined(f"The judge cited {whole} again.")[0] == [whole]
