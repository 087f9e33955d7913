from __future__ import annotations

from graphrag_pipeline.engines.model.tuning.passages import choose_passages
from graphrag_pipeline.engines.model.tuning.sampling import SampledUnit

DULL = "It rained. The rain went on. It was dull and grey. "
RICH = "Ada Lovelace met Charles Babbage in London. "


def unit(number: int, text: str) -> SampledUnit:
    return SampledUnit(f"u{number}", f"d{number}", text, 40)


def named(*names: str) -> list[dict]:
    return [{"name": name, "written": None, "type": "PERSON"} for name in names]


def choose(units: list[SampledUnit], mentions: dict[str, list[dict]], n: int = 9):
    return choose_passages(units, mentions, 14, "o200k_base", n)


def test_the_sentences_with_most_names_are_chosen_whole() -> None:
    [passage] = choose([unit(1, DULL + RICH + DULL)], {"u1": named("Ada Lovelace", "Charles Babbage", "London")})
    assert passage.text == RICH.strip() and passage.names == {"Ada Lovelace", "Charles Babbage", "London"}


def test_a_passage_with_marks_of_a_prompt_is_not_used() -> None:
    marked = RICH.replace("London", "London ## <|COMPLETE|>")
    assert choose([unit(1, marked)], {"u1": named("Ada Lovelace")}) == []
    [passage] = choose([unit(1, f"{marked}{DULL}")], {})
    assert "##" not in passage.text


def test_key_phrases_do_not_count_and_text_units_without_names_come_last() -> None:
    concepts = {"u1": [{"name": "the rain", "written": None, "type": "CONCEPT"}], "u2": named("Ada Lovelace")}
    first, second = choose([unit(1, DULL), unit(2, RICH)], concepts)
    assert (first.text_unit_id, second.text_unit_id, second.names) == ("u2", "u1", frozenset())


def test_languages_take_turns() -> None:
    english = "The ship was in the harbour of the town and it was for the men. "
    german = "Das Schiff ist im Hafen der Stadt und die Männer sind auf dem Schiff. "
    units = [unit(i, english + str(i)) for i in range(3)] + [unit(9, german)]
    found = choose_passages(units, {}, 40, "o200k_base", 2)
    assert [passage.language for passage in found] == ["en", "de"]
