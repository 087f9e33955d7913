"""Where two overlapping text units mention a pair: the overlap, or the rest of one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.indexing.graph.repeats import SpelledName, SpelledText, is_evidence_shared

_MET = "Fred Holly met Martha Dale. "
_OTHERS = ["It rained. ", "Fred Holly slept. ", "Martha Dale saw Peter Marsh! ", "Peter Marsh met Fred Holly. "]
parts = st.lists(st.sampled_from([_MET, *_OTHERS]), max_size=5).map("".join)


def is_shared(before: str, shared: str, own: str, *names: str, is_same_description: bool = False) -> bool:
    texts = (SpelledText(part) for part in (before, shared, own))
    return is_evidence_shared(*texts, [SpelledName(name.split("|")) for name in names], is_same_description)


@given(parts, parts, parts)
def test_each_sentence_counts_for_the_first_text_unit_that_has_it(before: str, shared: str, own: str) -> None:
    """Sentences that name the pair decide, wherever else its two names are."""
    if _MET in before + shared and _MET in shared + own:
        found = is_shared(before, shared, own, "FRED HOLLY", "MARTHA DALE")
        assert found == (_MET in shared and _MET not in own)


@pytest.mark.parametrize(
    ("own", "is_repeat"),
    [
        ("Holly asked Dale for a loan.", False),  # half of each name
        ("The holly was green when Dale came.", True),  # no name
        ("He asked her for a loan. Fred Holly was poor. Her name was Martha Dale.", True),
    ],
)
def test_half_of_a_name_with_capitals_is_evidence(own: str, is_repeat: bool) -> None:
    assert is_shared("", _MET, own, "FRED HOLLY", "MARTHA DALE") == is_repeat


def test_a_name_is_found_by_any_of_its_forms() -> None:
    names = "INTERNATIONAL BUSINESS MACHINES|IBM", "ARMONK"
    assert not is_shared("", "International Business Machines is in Armonk. ", "IBM left Armonk.", *names)


def test_short_and_common_words_are_searched_as_the_whole_name() -> None:
    assert is_shared("", "I'm Fred. ", "I am Fred.", "I'M", "FRED")
    assert not is_shared("", "I'm Fred. ", "I\u2019m Fred, too.", "I'M", "FRED")


@pytest.mark.parametrize(
    ("shared", "own", "is_repeat"),
    [
        ("Fred came. He met Scrooge. ", "It rained. Fred left. It snowed. It thawed. Scrooge slept.", True),
        ("Fred came. It rained. It snowed. He met Scrooge. ", "Fred left. Scrooge slept.", False),
        ("Fred came. ", "He met Scrooge.", False),  # from one part to the other
    ],
)
def test_without_a_sentence_of_both_names_the_shortest_run_between_them_decides(
    shared: str, own: str, is_repeat: bool
) -> None:
    assert is_shared("Scrooge was old. It rained. It snowed. It thawed. ", shared, own, "FRED", "SCROOGE") == is_repeat


def test_equal_descriptions_repeat_although_the_rest_has_the_pair_too() -> None:
    assert is_shared("", _MET, _MET, "FRED HOLLY", "MARTHA DALE", is_same_description=True)
    assert not is_shared("", "Fred Holly slept. ", _MET, "FRED HOLLY", "MARTHA DALE", is_same_description=True)


def test_names_that_no_text_has_are_no_evidence() -> None:
    assert not is_shared(_MET, _MET, "", "LOVE", "HATE") and not is_shared("", _MET, "", "LOVE")


@pytest.mark.parametrize(("own", "is_repeat"), [("萧炎走了。", True), ("第2天萧炎又见了薰儿。", False)])
def test_chinese_names_are_found_inside_clauses(own: str, is_repeat: bool) -> None:
    assert is_shared("下雨。", "萧炎在2024年见了薰儿。", own, "萧炎", "薰儿") == is_repeat
