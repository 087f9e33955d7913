import pytest

from graphrag_pipeline.indexing.extraction.names.forms.joined_bodies import find_joined_bodies
from graphrag_pipeline.indexing.extraction.names.occurrences import Name


def joined(text: str, *forms: str) -> list[str]:
    names = [Name(form, text.index(form), text.index(form) + len(form), 0) for form in forms]
    return [name.form for name in find_joined_bodies(sorted(names, key=lambda name: name.start), text)]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Fisheries and Oceans Canada agreed.", "Fisheries and Oceans Canada"),
        ("Ask the Police and Crime Commissioner.", "Police and Crime Commissioner"),
        ("The Community and Public Sector Union met.", "Community and Public Sector Union"),
        ("The Wye and Usk Foundation met.", "Wye and Usk Foundation"),
        ("money of the Bill and Melinda Gates Foundation", "Bill and Melinda Gates Foundation"),
        ("Waits for Child and Adolescent Services", "Child and Adolescent Services"),
        (
            "a vote of the Transport, Joinery, Glass Workers and Boat Builders Union",
            "Transport, Joinery, Glass Workers and Boat Builders Union",
        ),
        ("The Irish Nurses and Midwives Organisation met.", "Irish Nurses and Midwives Organisation"),
        ("the Fal and Helford Special Area of Conservation", "Fal and Helford Special Area of Conservation"),
    ],
)
def test_everyday_words_or_two_rare_words_share_the_noun_of_one_body(text: str, whole: str) -> None:
    assert joined(text, whole.rpartition(" and ")[2]) == [whole]


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("They met Ann Hill and Review Board.", ("Ann Hill", "Review Board")),
        ("The Environment Agency and Natural Trust met.", ("Environment Agency", "Natural Trust")),
        ("The Federal and National Party met.", ("Federal", "National Party")),
        ("In Northern Territory and South Australia it rained.", ("Northern Territory", "South Australia")),
        ("The Kremlin and Duma Council met.", ("Kremlin", "Duma Council")),
    ],
)
def test_other_halves_stay_two_names(text: str, forms: tuple[str, ...]) -> None:
    assert joined(text, *forms) == []


def test_a_half_that_is_a_name_elsewhere_stays_one() -> None:
    text = "The Wye and Usk Foundation met. The Wye is a river."
    places = [text.index("Wye"), text.rindex("Wye")]
    names = [*(Name("Wye", place, place + 3, 0) for place in places), Name("Usk Foundation", 12, 26, 0)]
    names.sort(key=lambda name: name.start)
    assert list(find_joined_bodies(names, text)) == []
    assert [name.form for name in find_joined_bodies(names[:2], text)] == ["Wye and Usk Foundation"]


def test_a_body_in_capitals_fills_a_line() -> None:
    whole = "LARKFIELD AND WENLOW ALLOTMENT ASSOCIATION"
    assert joined(f"{whole}\n\nMinutes", "LARKFIELD", "WENLOW ALLOTMENT ASSOCIATION") == [whole]
    assert joined(f"ASK: {whole}\n\nMinutes", "LARKFIELD", "WENLOW ALLOTMENT ASSOCIATION") == []
