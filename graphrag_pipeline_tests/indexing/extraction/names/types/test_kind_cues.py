import pytest

from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.types.kind_cues import find_defined_type, read_kind_cues


def cues_of(name: str, text: str) -> list[str]:
    start = text.index(name)
    return list(read_kind_cues(text, Name(name, start, start + len(name), 0)))


@pytest.mark.parametrize(
    ("name", "text", "cue"),
    [
        ("Verbund", "Verbund, the utility, has signed.", "organization role"),
        ("Meridian Voss", "Meridian Voss, the activist fund that holds 7 per cent, has pressed.", "organization role"),
        ("Rotax", "Voestalpine and Rotax, both large employers in Linz, compete.", "organization role"),
        ("Aontas Nua", "The opposition party Aontas Nua demanded it.", "organization role"),
        ("Siptu", "The Siptu union called it a betrayal.", "organization role"),
        ("Marino Bon", "The Senate sent the notary Marino Bon in 1331.", "person role"),
        ("Ketil Strom", "We thanked Ketil Strom, who leads the choir.", "person role"),
        ("Ketil Strom", "Ketil Strom, head of engineering, agreed.", "person role"),
        ("Kellbeck", "in the Lattimer Room, Kellbeck campus, and online", "place role"),
        ("Titan", "They bought a dredger called Titan last year.", "thing"),
        ("Durgol", "Durgol is a descaling acid.", "thing"),
    ],
)
def test_the_noun_beside_a_name_says_what_it_is(name: str, text: str, cue: str) -> None:
    assert cues_of(name, text) == [cue]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Start Point", "such a lens at Start Point, where her father, Josiah Crane, had been"),
        ("Corvane", "Corvane, steel and timber were sold."),
        ("Jobber", "The workers of Jobber, who have vans, came."),
        ("Linz", "They live in Linz."),
    ],
)
def test_other_nouns_say_nothing(name: str, text: str) -> None:
    assert cues_of(name, text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Teska( born 4 May 1901 in Vard) was a Danish painter and sculptor.", "PERSON"),
        ("Teska is a 1942 American horror film directed by Ann Hill.", "CONCEPT"),
        ("Teska is a village in Vard.", "GEO"),
        ("Teska is well known.", None),
        ("It is Teska. Teska is a village.", None),
    ],
)
def test_the_first_place_of_a_name_may_define_it(text: str, expected: str | None) -> None:
    names = [Name("Teska", place, place + 5, 0) for place in range(len(text)) if text.startswith("Teska", place)]
    assert find_defined_type("Teska", names, text) == expected
