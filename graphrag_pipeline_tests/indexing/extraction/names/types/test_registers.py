from __future__ import annotations

from collections import Counter

import pytest

from graphrag_pipeline.indexing.extraction.extracted_graph import read_document
from graphrag_pipeline.indexing.extraction.names.types.kindred_types import type_by_last_words
from graphrag_pipeline.indexing.extraction.names.types.registers import (
    drop_persons_of_things,
    explains,
    keep_strong_cues,
    type_things,
)

MANUAL = "A node is idle until it can run a job, and it must be told so. The state may be kept. A job will wait.\n" * 8
NEWS = "The bridge was closed, the mayor said, and it is not known when it will open. Boats were held.\n" * 20


def types_of(text: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for sentence in read_document("text", text)[0]:
        for occurrence in sentence.occurrences:
            found.setdefault(occurrence.title, set()).add(occurrence.type)
    return found


@pytest.mark.parametrize(("text", "expected"), [(MANUAL, True), (NEWS, False), (MANUAL[:100], False)])
def test_an_explanation_is_in_the_present_tense(text: str, expected: bool) -> None:
    assert explains(text) is expected


def test_few_cues_among_many_uses_of_an_explanation_say_nothing() -> None:
    cues = Counter({"GEO": 22, "organization role": 2, "PERSON": 30, "club": 9})
    assert keep_strong_cues(98, cues) == Counter({"PERSON": 30})


def test_a_given_name_with_articles_is_written_as_a_thing_in_an_explanation() -> None:
    assert keep_strong_cues(40, Counter({"describes": 6, "named thing": 16}))["describes"] == 40
    assert keep_strong_cues(4, Counter({"named thing": 2, "person role": 2}))["describes"] == 0


def test_a_person_does_not_begin_with_a_term_of_the_document() -> None:
    types = {"Ada": "CONCEPT", "Ada Standard": "PERSON", "Ada Bell": "PERSON", "Ann Hill": "PERSON"}
    assert drop_persons_of_things(types) == {"Ada Standard": "UNKNOWN", "Ada Bell": "UNKNOWN"}
    assert drop_persons_of_things({"Ada": "PERSON", "Ada Bell": "PERSON"}) == {}


def test_common_words_name_no_body_of_an_explanation() -> None:
    types = {"Integer Division": "ORGANIZATION", "Cygnus Support": "ORGANIZATION", "Ticket-Granting Service": "UNKNOWN"}
    assert type_things(types) == {"Integer Division": "CONCEPT", "Ticket-Granting Service": "CONCEPT"}


def test_a_program_that_acts_and_has_things_in_it_is_a_term_of_a_manual() -> None:
    text = MANUAL + "Jobs wait in Quorl. Limits in Quorl are per node. Quorl supports arrays.\n" * 3
    assert types_of(text)["QUORL"] == {"CONCEPT"}
    assert types_of(NEWS + "Boats wait in Quorl. Roads in Quorl were shut. The road to Quorl was lost.\n" * 3)[
        "QUORL"
    ] == {"GEO"}


def test_a_word_of_an_explanation_is_no_surname_without_a_deed() -> None:
    types = {"Quern": "UNKNOWN", "Monty Quern": "PERSON"}
    cues: dict[str, Counter[str]] = {"Quern": Counter(), "Monty Quern": Counter()}
    assert type_by_last_words(types, cues, is_explaining=True) == {}
    assert type_by_last_words(types, cues) == {"Quern": "PERSON"}
    assert type_by_last_words(types, cues | {"Quern": Counter(PERSON=1)}, is_explaining=True) == {"Quern": "PERSON"}


def test_a_general_word_in_capitals_or_before_a_number_names_nothing() -> None:
    text = (
        MANUAL + "Set route NAME here. Use the Type 3 link. See the Data field. Then NAME is set, and Type 2 too.\n" * 3
    )
    assert not {"NAME", "TYPE", "DATA"} & set(types_of(text))
