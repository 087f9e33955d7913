"""Public bodies, and places with an administration, in a Chinese text."""

from __future__ import annotations

import pytest

from graphrag_pipeline_tests.support.chinese_names import find_types

pytest.importorskip("jieba")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("江州市公安局局长说，案子破了。", {"江州市公安局"}),
        ("清河省清河市公安局昨日通报案情。", {"清河市公安局"}),
        ("他在南岭县第二中学读书。", {"南岭县第二中学"}),
        ("清河市中级人民法院宣判了。", {"清河市中级人民法院"}),
        ("國立成功大學的圖書館很大。", {"國立成功大學"}),
        ("她在国家天文台做研究。", {"国家天文台"}),
        ("青川省林业厅昨日宣布，保护区将扩大。", {"青川省林业厅"}),
        ("陵州省高级人民法院昨日宣判。", {"陵州省高级人民法院"}),
        ("秋水镇派出所所长接到报案。", {"秋水镇派出所"}),
        ("陵川市文化和旅游局昨天宣布，公园开放。", {"陵川市文化和旅游局"}),
        ("宁河大学新闻与传播学院的楼很新。", {"宁河大学", "新闻与传播学院"}),
        ("永河市第三污水处理厂停了。永河市水务局说，明天恢复。", {"永河市第三污水处理厂", "永河市水务局"}),
        ("陵川市民政局和财政局都同意。", {"陵川市民政局", "财政局"}),
        ("这是结局。他在上海读大学，去了各市教育局。", set()),
    ],
)
def test_a_body_has_its_place_and_what_it_does(text: str, expected: set[str]) -> None:
    assert {name for name, kind in find_types(text).items() if kind == "ORGANIZATION"} == expected


def test_places_have_the_word_for_their_administration() -> None:
    types = find_types("清河省清河市公安局昨日通报案情。他闯入柳家庄。她在酒泉工作。")
    assert {name for name, kind in types.items() if kind == "GEO"} == {"清河省", "柳家庄", "酒泉"}
