from collections import Counter, defaultdict

import pytest

from graphrag_pipeline.indexing.extraction.extracted_graph import read_document
from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.types.kindred_types import (
    type_by_company,
    type_by_first_words,
    type_by_last_words,
    type_by_places,
    type_by_short_names,
    type_families,
)

NO_CUES: defaultdict[str, Counter[str]] = defaultdict(Counter)


def test_two_places_share_their_last_word() -> None:
    types = {
        "Lille Arvel": "GEO",
        "Store Arvel": "UNKNOWN",
        "Arvel": "UNKNOWN",
        "Mill Road": "GEO",
        "Old Road": "UNKNOWN",
    }
    assert type_by_places(types, NO_CUES) == {"Store Arvel": "GEO"}
    assert type_by_places({"River Griffe": "GEO", "Griffe": "ORGANIZATION"}, NO_CUES) == {"Griffe": "GEO"}


def test_a_full_name_has_the_type_of_the_body_that_its_last_word_names() -> None:
    types = {"Ontiñar": "ORGANIZATION", "Real Ontiñar": "UNKNOWN", "Board": "ORGANIZATION", "Vard Board": "UNKNOWN"}
    assert type_by_short_names(types) == {"Real Ontiñar": "ORGANIZATION"}


def test_a_place_in_the_name_of_a_firm_stays_a_place() -> None:
    types = {
        "Stadtbahn Ravenglas": "ORGANIZATION",
        "Ravenglas": "GEO",
        "Mombasa Lions": "ORGANIZATION",
        "Lions": "UNKNOWN",
    }
    cues = NO_CUES | {"Lions": Counter({"named thing": 1})}
    assert type_by_last_words(types, cues) == {"Lions": "ORGANIZATION"}


def test_the_plural_of_a_surname_is_a_family() -> None:
    types = {"Admiral Tolver": "PERSON", "Tolvers": "ORGANIZATION", "Wenlows": "UNKNOWN"}
    the = {form: Counter({"named thing": 1}) for form in types}
    assert type_families(types, NO_CUES | the) == {"Tolvers": "PERSON"}
    assert type_families(types, NO_CUES) == {}


def test_a_clause_of_its_own_or_a_shared_noun_is_no_company() -> None:
    def types_in(text: str, known: str, kind: str, unknown: str) -> dict[str, str]:
        names = [Name(form, text.index(form), text.index(form) + len(form), 0) for form in (known, unknown)]
        names.sort(key=lambda name: name.start)
        return type_by_company(names, {known: kind, unknown: "UNKNOWN"}, text, False)

    assert types_in("It lies between Teska and Gansk.", "Teska", "GEO", "Gansk") == {"Gansk": "GEO"}
    assert types_in("Elmo is in Teska, Norvolt was in Gansk.", "Teska", "GEO", "Norvolt") == {}
    council = "Vatersay Community Council"
    assert types_in(f"They met the Barra and {council}.", council, "ORGANIZATION", "Barra") == {}


def test_the_first_word_of_local_bodies_is_their_place() -> None:
    club = {"Tarkerris Sailing Club": "ORGANIZATION", "Tarkerris": "UNKNOWN"}
    assert type_by_first_words(club, NO_CUES) == {"Tarkerris": "ORGANIZATION"}
    assert type_by_first_words(club | {"Tarkerris School": "ORGANIZATION"}, NO_CUES) == {"Tarkerris": "GEO"}
    towards = NO_CUES | {"Tarkerris": Counter({"towards": 1})}
    assert type_by_first_words(club, towards) == {"Tarkerris": "GEO"}
    assert type_by_first_words({"Lumo Sensing": "ORGANIZATION", "Lumo": "UNKNOWN"}, NO_CUES) == {"Lumo": "ORGANIZATION"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Two laps later Zelwa Orrik fell. Orrik was nine seconds back.", {"ZELWA ORRIK": "PERSON"}),
        ("Two laps later Zelwa Orrik fell. Zelwa was nine seconds back.", {"ZELWA ORRIK": "UNKNOWN"}),
        ("The firm fell behind Grupo Orrik. Orrik was nine points back.", {"GRUPO ORRIK": "ORGANIZATION"}),
        ("The appeal was heard by Quenda J and by Orrik JA. Quenda agreed.", {"QUENDA": "PERSON"}),
    ],
)
def test_a_name_is_a_person_if_its_last_word_is_its_second_mention(text: str, expected: dict[str, str]) -> None:
    found = {one.title: one.type for sentence in read_document("race", text)[0] for one in sentence.occurrences}
    assert expected.items() <= found.items()
