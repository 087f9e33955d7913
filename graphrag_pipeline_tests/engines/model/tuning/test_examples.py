from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.engines.model.extraction.reply_fields import ExtractedEntity, ExtractedRelationship
from graphrag_pipeline.engines.model.tuning.examples import (
    DraftedExample,
    check_example,
    choose_examples,
    find_written,
    measure_support,
    occurs,
    read_draft,
)
from graphrag_pipeline.engines.model.tuning.sampling import Passage

TEXT = "Dr Ines Calvo opened the Brill Observatory above Tarn in 1962. Omar Seck was her pupil."
PASSAGE = Passage("u", "d", TEXT, frozenset({"Ines Calvo", "Brill Observatory", "Tarn", "Omar Seck"}), "en")
TYPES = ("PERSON", "ORGANIZATION")
UNSAID = "described by what its passage does not say"
INES = ExtractedEntity("INES CALVO", "PERSON", "Ines Calvo opened the Brill Observatory.")
BRILL = ExtractedEntity("Brill Observatory", "ORGANIZATION", "The Brill Observatory was opened in 1962.")
OPENED = ExtractedRelationship("Ines Calvo", "Brill Observatory", "Ines Calvo opened the Brill Observatory.", 9.0)


def check(*records: ExtractedEntity | ExtractedRelationship):
    refused: Counter[str] = Counter()
    entities = tuple(record for record in records if isinstance(record, ExtractedEntity))
    relationships = tuple(record for record in records if isinstance(record, ExtractedRelationship))
    return check_example(DraftedExample(entities, relationships), PASSAGE, TYPES, refused), dict(refused)


def test_what_the_passage_holds_stays_in_its_own_spelling() -> None:
    found, refused = check(INES, BRILL, OPENED)
    assert found and [entity.name for entity in found.entities] == ["Ines Calvo", "Brill Observatory"]
    assert [(r.source, r.target) for r in found.relationships] == [("Ines Calvo", "Brill Observatory")]
    assert found.coverage == 0.5 and refused == {}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (replace(INES, name="Zaphod Quux"), "entity not in its passage"),
        (replace(INES, name="Cal"), "entity not in its passage"),
        (replace(INES, name="Omar Seck", type="GEO"), "entity of a type outside the list"),
        (replace(INES, name="Omar Seck", description="Later he won a famous prize."), f"entity {UNSAID}"),
        (replace(INES, name="Omar Seck", description=""), "entity without a usable description"),
        (replace(INES, name="ines  calvo"), "entity repeated"),
        (replace(OPENED, target="Tarn"), "relationship without two entities of the example"),
        (replace(OPENED, target="INES CALVO"), "relationship without two entities of the example"),
        (replace(OPENED, source="Brill Observatory", target="Ines Calvo"), "relationship repeated"),
        (replace(OPENED, description="They quarrelled bitterly for decades."), f"relationship {UNSAID}"),
    ],
)  # fmt: skip
def test_each_reason_to_refuse_a_record_is_counted(record, reason: str) -> None:
    found, refused = check(INES, BRILL, OPENED, record)
    assert refused == {reason: 1}
    assert found and len(found.entities) == 2 and len(found.relationships) == 1


def test_a_strength_that_the_prompt_does_not_allow_is_the_usual_one() -> None:
    found, refused = check(INES, BRILL, replace(OPENED, strength=0.1))
    assert found and [pair.strength for pair in found.relationships] == [5.0] and refused == {}


def test_an_example_of_too_little_is_refused() -> None:
    found, refused = check(INES, OPENED)
    assert found is None and refused["example with fewer than 2 entities or without a relationship"] == 1


def test_examples_with_most_names_are_kept_in_their_order() -> None:
    low, high = (replace(check(INES, BRILL, OPENED)[0], coverage=coverage) for coverage in (0.2, 0.9))
    assert choose_examples([low, high, low, high], 2) == [high, high]
    assert choose_examples([low, high], 5) == [low, high]


@pytest.mark.parametrize(
    ("name", "text", "is_in"),
    [
        ("ines calvo", TEXT, True),
        ("Tarn", "Tarnished", False),
        ("\u5f20\u4e09", "\u6628\u5929\u5f20\u4e09\u53bb\u4e86\u5317\u4eac", True),
        ("O\u2019Brien", "Mr O'Brien left", True),
        ("", TEXT, False),
    ],
)
def test_a_name_is_found_in_any_case_at_the_borders_of_words(name: str, text: str, is_in: bool) -> None:
    assert occurs(name, text) is is_in


@given(st.text(max_size=30))
def test_a_name_as_written_is_in_the_text(name: str) -> None:
    text = f"x {name.swapcase()} y"
    assert find_written(name, text) in (name, *[text[i:j] for i in range(len(text)) for j in range(i, len(text) + 1)])


def test_support_counts_words_by_their_stems_in_any_script() -> None:
    assert measure_support("Ines Calvo opens observatories", TEXT) == 1.0
    assert measure_support("bitter quarrel", TEXT) == 0.0
    assert measure_support("\u5f20\u4e09\u53bb\u5317\u4eac", "\u6628\u5929\u5f20\u4e09\u53bb\u4e86\u5317\u4eac") == 1.0


KEYS = st.sampled_from(["entities", "relationships", "name", "type"])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.text(max_size=5) | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)


@given(ANY_JSON)
def test_any_json_gives_a_draft(value: object) -> None:
    draft = read_draft(value if isinstance(value, dict) else {"entities": value}, Counter())
    assert all(entity.name for entity in draft.entities)
