import pytest

from graphrag_pipeline.indexing.extraction.names.concepts import choose_concepts, find_concepts, find_speakers
from graphrag_pipeline.indexing.extraction.names.finder import Name

TIDES = """A tidal barrage holds water back. When the sea is low, the barrage lets the water through a turbine. The
turbine turns, and the turbine makes power. Every barrage changes the mud flats behind it; birds live on mud flats. A
turbine wears out in salt water. Engineers built the barrage for the turbine, and a second turbine for the barrage."""


def test_words_far_more_frequent_than_in_english_are_concepts() -> None:
    assert list(choose_concepts(TIDES * 4, set())) == ["mud flats", "salt water", "turbine", "barrage"]


def test_occurrences_are_found_outside_of_names_in_reading_order() -> None:
    text = TIDES * 4
    names = find_concepts(text, [Name("Tidal Barrage", 2, 15, 0)], [0])
    written = [text[name.start : name.end].lower() for name in names]
    assert written[:4] == ["barrage", "turbine", "turbine", "turbine"]
    assert {name.form for name in names} == {"mud flats", "salt water", "turbine", "barrage"}
    assert [name.start for name in names] == sorted(name.start for name in names)


def test_plurals_go_with_their_singular() -> None:
    text = "It has the turbine, and of the turbines I know nothing. " * 8
    assert choose_concepts(text, set())["turbine"] == ["turbine", "turbines"]


def test_a_phrase_that_is_a_name_is_not_a_concept() -> None:
    assert "turbine" not in choose_concepts(TIDES * 4, {"TURBINE"})


def test_everyday_things_are_concepts_only_where_frequent() -> None:
    talk = "He said what he had to say about it and went on his way to where nobody knew him or his trade at all. "
    seldom = talk * 200 + "It lay by the candle. " * 6
    assert choose_concepts(seldom, set()) == {}
    assert list(choose_concepts(seldom.replace("candle", "goblet"), set())) == ["goblet"]
    assert list(choose_concepts(seldom + "It lay by the candle. " * 14, set())) == ["candle"]


def test_the_subject_of_a_verb_of_speech_is_a_person() -> None:
    text = "The phantom rose. 'Captive!' cried the phantom. The turbine said nothing."
    places = [(form, text.index(form, start)) for form, start in (("phantom", 0), ("phantom", 30), ("turbine", 0))]
    concepts = [Name(form, start, start + len(form), 0) for form, start in places]
    assert find_speakers(text, concepts) == {"phantom"}


@pytest.mark.parametrize("text", ["", "word", "The cat sat. The cat ran. The cat slept.", "!" * 500])
def test_little_text_has_no_concepts(text: str) -> None:
    assert choose_concepts(text, set()) == {}
