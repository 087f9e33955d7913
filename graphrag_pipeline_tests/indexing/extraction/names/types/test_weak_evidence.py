from itertools import combinations

import pytest

from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.types import weak_evidence
from graphrag_pipeline.indexing.extraction.names.types.weak_evidence import type_by_signs

FIRMS = {"Acme Ltd": "ORGANIZATION", "Bolt Ltd": "ORGANIZATION", "Crux Ltd": "ORGANIZATION"}
PERSONS = {"Ann Hill": "PERSON", "Bo Lee": "PERSON", "Cy Ash": "PERSON"}


def type_of(form: str, text: str, others: dict[str, str], terms: frozenset[str] = frozenset()) -> str | None:
    start = text.index(form)
    names = [Name(form, start, start + len(form), 0)]
    names += [Name(other, len(text), len(text), 0) for other in others]
    return type_by_signs(names, {form: "UNKNOWN"} | others, terms, text, frozenset()).get(form)


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("Dekra", "The lift was checked by Dekra in May.", "ORGANIZATION"),
        ("Bernsten", "Stacy Rasgon of Bernsten said so.", "ORGANIZATION"),
        ("Begbies Tronor", "Administrators from Begbies Tronor left.", "ORGANIZATION"),
        ("Caerwillan", "She runs a firm from Caerwillan.", "GEO"),
        ("Borsk", "They got help from Borsk, where a school stands.", "GEO"),
        ("Wimbledon", "They came to the Wimbledon final.", "GEO"),
        ("Stannard Ives", "and Stannard Ives would survey the roof", "ORGANIZATION"),
        ("Cashla", "land near the substation at Cashla. It declined", "GEO"),
        ("Quorl", "an engineer at Quorl resigned", "ORGANIZATION"),
        ("Marchbank Tolley", "Nils Overgaard of Marchbank Tolley for item 6", "ORGANIZATION"),
        ("Wigton", "Reays of Wigton will bid", "GEO"),
        ("Arrabawn", "on the square, Arrabawn collects milk from the farms", "ORGANIZATION"),
        ("Biobest", "Biobest sell the predators", "ORGANIZATION"),
        ("Ridder", "after Ridder's purchase of it", "ORGANIZATION"),
        ("Finisar", "the modules of Finisar are read", "ORGANIZATION"),
        ("InnoGrid", "as did InnoGrid. Scots law", "ORGANIZATION"),
        ("Scots", "governed by Scots law.", None),
        ("Exhibit B", "as shown in Exhibit B.", None),
        ("Tuxol", "Tuxol.", None),
        ("Trebolna", "Then rescuers from Trebolna cut", "GEO"),
        ("Hortun Quarry", "the path for stone from Hortun Quarry", "GEO"),
        ("Fellon Brewery", "leaflet and Fellon Brewery", "ORGANIZATION"),
    ],
)
def test_signs_that_agree_type_a_name_among_firms(form: str, text: str, expected: str | None) -> None:
    assert type_of(form, text, FIRMS) == expected


def test_what_works_is_a_program_where_programs_are_named() -> None:
    programs = dict.fromkeys(("Kafka", "Jenkins", "Grafana"), "CONCEPT")
    assert type_of("Karpenter", "Karpenter works, and we go on.", programs) == "CONCEPT"


def test_a_story_and_a_common_word_of_the_text_are_left_alone() -> None:
    assert type_of("Dekra", "It was found by Dekra at night.", PERSONS) is None
    assert type_of("Harbour", "a harbour where Harbour had opened", FIRMS) is None
    assert type_of("Licensed Goods", "taken by Licensed Goods", FIRMS, frozenset({"Licensed Goods"})) is None


def test_the_order_of_the_signs_does_not_change_the_type() -> None:
    for signs in combinations(weak_evidence._WEIGHTS, 3):
        given = dict.fromkeys((*signs, "many bodies"), 1)
        assert weak_evidence._choose(given) == weak_evidence._choose(dict(reversed(given.items()))), signs
