import regex

from graphrag_pipeline.indexing.extraction.names.forms.numbered import join_numbers
from graphrag_pipeline.indexing.extraction.names.occurrences import Name


def forms_of(text: str) -> list[str]:
    names = [Name(m.group(), *m.span(), 0) for m in regex.finditer(r"\p{Lu}[\p{Lu}-]+", text)]
    return [name.form for name in join_numbers(names, text)[0]]


def test_a_standard_is_named_with_its_number_only() -> None:
    assert forms_of("Gloves meet EN 388 and EN 14511-2. An EN standard helps.") == ["EN 388", "EN 14511-2"]
    assert forms_of("as in VDI 2035, page 3") == ["VDI 2035"]


def test_another_acronym_has_a_number_if_it_always_has_one() -> None:
    assert forms_of("rules of HTX 03-01 and HTX 03-02") == ["HTX 03-01", "HTX 03-02"]
    assert forms_of("rules of HTX 03-01. The HTX group met.") == ["HTX", "HTX"]
    assert forms_of("patients with HLA-B*5801") == ["HLA-B*5801"]


def test_years_and_quantities_are_no_part_of_a_name() -> None:
    assert forms_of("In FIFA 2022 was late, and it paid NATO 40 million") == ["FIFA", "NATO"]
    assert forms_of("a WLAN 200 m away") == ["WLAN"]
