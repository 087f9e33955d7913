import pytest

from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.terms.ordinary_words import (
    drop_held_places,
    drop_ordinary_terms,
    drop_story_terms,
    reports,
)


def _keep(mentions: dict[str, int], title: str = "") -> list[str]:
    concepts = [Name(form, 0, len(form), 0) for form, n in mentions.items() for _ in range(n)]
    return list(dict.fromkeys(name.form for name in drop_ordinary_terms(concepts, "", title)))


def test_words_of_every_day_and_for_persons_go() -> None:
    mentions = {"border": 5, "sandbar": 2, "skippers": 5, "firefighter": 5, "harbour post": 3}
    assert _keep(mentions) == ["sandbar", "harbour post"]


def test_a_word_that_english_knows_is_mentioned_often_or_in_the_title() -> None:
    assert _keep({"blaze": 2, "rainforest": 3, "warplanes": 1}) == ["rainforest", "warplanes"]
    assert _keep({"blaze": 1, "rubble": 2}, "Blazes near Sydney") == ["blaze"]


def test_a_word_made_of_common_words_is_one_that_english_knows() -> None:
    mentions = {"clean-up": 2, "buyout": 2, "detain": 2, "exportation": 2, "seagrass": 2}
    assert _keep(mentions) == ["seagrass"]


def test_a_phrase_that_says_how_much_or_how_goes() -> None:
    mentions = {"growing number": 4, "cent fall": 4, "property losses": 3, "positive sign": 4, "deciding rubber": 3}
    assert _keep(mentions) == []
    assert _keep({"deciding rubber": 4, "hearing loss": 4}) == ["deciding rubber", "hearing loss"]


def test_a_phrase_of_common_words_is_mentioned_often_or_in_the_title() -> None:
    mentions = {"company store": 2, "credit card": 2, "stem cell": 2, "lung cancer": 2, "climate change": 2}
    assert _keep(mentions) == ["credit card", "stem cell", "lung cancer", "climate change"]
    assert _keep({"company store": 2}, "The company store") == ["company store"]


def test_kinds_of_firms_and_persons_and_deeds_go() -> None:
    assert _keep({"gold mining company": 2, "car maker": 2, "spill": 4, "spills": 5}) == ["spills"]


def test_what_is_mostly_counted_is_a_unit() -> None:
    text = "It sold 25,000 hogsheads and 3 hogsheads. Two seagrass beds and 4 asylum seekers, 5 asylum seekers."
    forms = ("hogsheads", "hogsheads", "seagrass", "asylum seekers", "asylum seekers")
    concepts, place = [], 0
    for form in forms:
        place = text.index(form, place)
        concepts.append(Name(form, place, place + len(form), 0))
        place += 1
    assert [name.form for name in drop_ordinary_terms(concepts, text)] == [
        "seagrass",
        "asylum seekers",
        "asylum seekers",
    ]


def test_places_that_only_their_owner_names_go() -> None:
    forms = ("Arafat's offices", "Tessim's wife", "Sailor's Rest", "Perrow")
    assert [name.form for name in drop_held_places(Name(form, 0, 1, 0) for form in forms)] == list(forms[1:])


@pytest.mark.parametrize(
    ("text", "n_proper", "expected"),
    [
        ("Ann Hill was there. It was late.", 1, True),
        ("The valve was open. " + "He said that he was there. " * 8, 2, False),
        ("The valve is open. It is safe and it can close.", 0, False),
        ("The valve is open. " + "It is safe and it can be shut by hand. " * 4, 2, False),
        ("The valve was open. " + "It was safe and it was shut by hand there. " * 4, 2, True),
        ("The minister says the valve was open, and she can see it. She says so. " + "It is safe. " * 8, 1, True),
        ("The boat was sunk, the minister said. He said it was late. " + "It is safe. " * 10, 1, True),
        ("I was sunk, he said. She said it was late. " + "He is safe, and she is. " * 10, 2, False),
        ("", 0, False),
    ],
)
def test_a_text_reports_if_it_is_full_of_names(text: str, n_proper: int, expected: bool) -> None:
    assert reports(text, n_proper) is expected


@pytest.mark.parametrize(
    ("mentions", "kept"),
    [
        ({"front door": 9, "machine gun": 5}, ["machine gun"]),
        ({"dim bulb": 4, "plump sister": 5, "frozen maid": 3, "packet boat": 2}, ["plump sister", "packet boat"]),
        ({"acquaintance": 5, "likeness": 12, "goose": 7}, ["goose"]),
        ({"newspaper file": 3, "station wagon": 6}, ["station wagon"]),
    ],
)
def test_a_story_keeps_only_things_of_its_own(mentions: dict[str, int], kept: list[str]) -> None:
    concepts = [Name(form, 0, len(form), 0) for form, n in mentions.items() for _ in range(n)]
    assert list(dict.fromkeys(name.form for name in drop_story_terms(concepts, ""))) == kept
