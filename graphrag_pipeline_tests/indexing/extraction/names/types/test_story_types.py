import re
from collections import Counter, defaultdict

import pytest

from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.types.story_types import type_in_story


def _type(text: str, form: str, kind: str = "UNKNOWN", cues: Counter[str] | None = None) -> dict[str, str]:
    names = [Name(form, match.start(), match.end(), 0) for match in re.finditer(rf"\b{form}\b", text)]
    return type_in_story(names, {form: kind}, defaultdict(Counter, {form: cues or Counter()}), text)


@pytest.mark.parametrize(
    "text",
    [
        "He waited until Ostrava had gone.",
        "Nobody would laugh at Ostrava's hat.",
        '"Who is there?" asked Ostrava.',
        '"Come in, Ostrava," he said.',
        "Ostrava slowly turned round, and he ran.",
        "It was easier if Ostrava hadn't been there.",
    ],
)
def test_who_acts_owns_or_is_addressed_in_a_story_is_a_person(text: str) -> None:
    assert _type(text.replace("Ostrava", "Vellick"), "Vellick") == {"Vellick": "PERSON"}


@pytest.mark.parametrize(
    "text",
    ["He got out of the Vellick and ran.", "She lived in Vellick.", "The Vellick rolled on.", "Vellick! Vellick!"],
)
def test_things_and_places_of_a_story_are_none(text: str) -> None:
    assert _type(text, "Vellick") == {}


def test_a_place_that_acts_once_stays_without_type() -> None:
    assert _type("Vellick had slept.", "Vellick", cues=Counter({"towards": 1})) == {}


def test_only_an_addressed_given_name_changes_its_type() -> None:
    assert _type('"That is fine, Tim. I know."', "Tim", "CONCEPT") == {"Tim": "PERSON"}
    assert _type("Tim had a licence.", "Tim", "CONCEPT") == {}
    assert _type('"That is fine, Brick," he said.', "Brick", "CONCEPT") == {}
