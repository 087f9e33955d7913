"""Surname and title of a person whom the document names in full."""

from __future__ import annotations

import pytest

from graphrag_pipeline.indexing.extraction.names.chinese.titled_forms import find_place_forms, find_titled_forms


@pytest.mark.parametrize(
    ("people", "text", "expected"),
    [
        ({"陆明远", "陆师傅"}, "顾长风问：“陆师傅，你见过吗？”陆明远摇头。", {"陆师傅": "陆明远"}),
        ({"陆明远", "陆小山", "陆师傅"}, "陆师傅来了。", {}),
        ({"王德发", "王国英", "王老板"}, "王老板全名王德发。", {"王老板": "王德发"}),
        ({"沈掌柜", "沈玉珠"}, "沈掌柜开店。他的女儿沈玉珠出嫁了。", {}),
        ({"陆明远", "陆师傅"}, "陆师傅和陆明远一起来了。", {}),
        ({"何玉兰", "何太太"}, "何太太来了。", {}),
        ({"秦伯", "秦师傅"}, "秦师傅走了。", {}),
    ],
)
def test_a_title_is_the_one_person_with_the_surname(people: set[str], text: str, expected: dict[str, str]) -> None:
    assert find_titled_forms(people, text) == expected


def test_a_place_without_the_word_for_its_administration_is_the_same_place() -> None:
    assert find_place_forms({"陵川", "陵川市", "永河", "永河县", "永河市"}) == {"陵川": "陵川市"}
