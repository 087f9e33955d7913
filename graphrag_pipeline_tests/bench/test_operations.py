"""The scoring of the bench on documents of operations, and its data: verbatim quotes, names that occur."""

from __future__ import annotations

import pytest

from graphrag_pipeline_tests.bench.operations import DATA, Outcome, find_wanted, holds, list_first, read_half

QUESTION = {"evidence": [[{"quote": "Owner: Ann"}, {"quote": "run by Ann"}], [{"quote": "tier … 1"}]]}
ENTITIES = [
    {"title": "SLOT-PLANNER", "names": ["slot-planner"], "type": "SERVICE", "degree": 2},
    {"title": "SEV-1", "names": ["Sev-1"], "type": "OTHER", "degree": 9},
    {"title": "MARCH 3", "names": [], "type": "OTHER", "degree": 1},
    {"title": "VAN", "names": ["van"], "type": "OTHER", "degree": 1},
]
WANTED = [
    {"name": "slot-planner", "aliases": [], "type": "SERVICE"},
    {"name": "price-feed", "aliases": ["pf"], "type": "SERVICE"},
]


@pytest.mark.parametrize("half", ["dev", "held_back"])
def test_each_quote_is_verbatim_in_its_document_and_each_wanted_name_occurs(half: str) -> None:
    values = read_half(half)
    texts = {path.relative_to(DATA / half).as_posix(): path.read_text("utf-8") for path in (DATA / half).rglob("*.*")}
    for question in values["questions"]:
        assert bool(question["evidence"]) == (question["kind"] != "unanswerable"), question
        for one in (one for group in question["evidence"] for one in group):
            assert 10 <= len(one["quote"]) <= 200
            assert all(piece in texts[one["document"]] for piece in one["quote"].split(" … ")), one
    whole = "\n".join(texts.values()).casefold()
    for entity in values["entities"]:
        assert any(name.casefold() in whole for name in (entity["name"], *entity["aliases"])), entity
    assert set(values["complete_documents"]) <= set(texts)


def test_a_passage_holds_a_quote_whatever_its_white_space_case_and_marks() -> None:
    assert holds("> so the\n**root** cause is <code>a_b</code> &gt; [1](x.md)", "The root cause is `a_b` > 1")
    assert holds("service: x; tier: 1; owner: Ann", "x … Ann … tier")
    assert not holds("service: x; tier: 1", "x … Ann")


def test_the_first_passage_needs_one_group_and_the_first_three_all() -> None:
    assert Outcome(QUESTION, ("Run by Ann.",), False, 0.0).is_first_right
    assert not Outcome(QUESTION, ("Run by Ann.",), False, 0.0).is_right_in_three
    assert Outcome(QUESTION, ("Bob.", "Run by Ann.", "tier: 1"), False, 0.0).is_right_in_three
    assert not Outcome(QUESTION, ("a", "b", "Run by Ann.", "tier: 1"), False, 0.0).is_right_in_three


def test_wanted_names_and_junk_are_found_without_case() -> None:
    assert find_wanted(ENTITIES, WANTED) == {"SERVICE": [True, False]}
    half = {"junk": ["sev-1"], "junk_types": ["NUMBER"], "junk_pattern": r"march \d", "entities": WANTED}
    assert [(verdict, title) for verdict, _, title in list_first(ENTITIES, half)] == [
        ("junk", "SEV-1"),
        ("", "SLOT-PLANNER"),
        ("junk", "MARCH 3"),
        ("?", "VAN"),
    ]
