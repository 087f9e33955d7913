from __future__ import annotations

import pytest

from graphrag_pipeline.engines.model.tuning.sample_names import count_uses, read_names

TEXTS = (
    "The harbour was quiet after the storm. A little boy and his little dog went to their harbour. "
    "The little boat, the harbour and every storm of that year were known to the men who looked at the sea. "
    "There was a little light at the end of the harbour. They looked again; they looked for the ship of the captain. "
    "At school, the captain was kind to the boys.",
)


@pytest.mark.parametrize("word", ["AFTER", "THEIR", "LITTLE", "WHICH", "LOOKED", "FAMOUS", "NATIONAL"])
def test_function_words_adjectives_and_verbs_name_no_kind(word: str) -> None:
    assert count_uses(TEXTS).name_no_kind(word)


@pytest.mark.parametrize("word", ["HARBOUR", "STORM", "SCHOOL", "SHIPS", "LITTLE SHIP", "ORGANIZATION", "FESTIVAL"])
def test_nouns_of_the_texts_and_unknown_words_may_be_kinds(word: str) -> None:
    assert not count_uses(TEXTS).name_no_kind(word)


@pytest.mark.parametrize("word", ["COLD", "DEAR", "MADE", "WEARY", "WENT"])
def test_adjectives_and_verbs_that_the_texts_also_use_like_nouns_name_no_kind(word: str) -> None:
    text = (
        "It was cold, and the cold was very cold. My dear, oh my dear; of the dear. He made a fire of made. "
        "He was weary and they were so weary, very weary; the weary. She went home and he went, as they went. "
    )
    assert count_uses([*TEXTS, text]).name_no_kind(word)
    assert not count_uses([*TEXTS, text, "It was home. The home of the men. They left the home."]).name_no_kind("HOME")


def test_function_words_of_the_language_of_the_texts_name_no_kind() -> None:
    german = "Der Hafen ist nicht in der Stadt und die Schiffe sind auch nicht nach Norden, aber noch im Hafen. " * 2
    assert count_uses([german]).name_no_kind("NACH") and not count_uses([german]).name_no_kind("SCHIFF")
    assert not count_uses(TEXTS).name_no_kind("NACH")


def test_a_word_that_ends_names_of_things_is_a_kind() -> None:
    text = "They saw a green green field and the green hills behind Kestrel Green, where a green flag was."
    rows = {"u1": [{"name": "KESTREL GREEN", "type": "PLACE"}]}
    assert read_names([text], rows).refuse("GREEN") is None
    assert read_names([text], {}).refuse("GREEN") == "type that names no kind of thing"
