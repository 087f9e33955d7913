"""Chinese persons whose names are other words, or contain one."""

from __future__ import annotations

import pytest

from graphrag_pipeline_tests.support.chinese_names import find_people, find_types

pytest.importorskip("jieba")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("总设计师韩国栋介绍，飞船明年发射。", {"韩国栋"}),
        ("父亲韩国平站在门口。医生对韩国平说，孩子没事了。", {"韩国平"}),
        ("护士长温柔跑来说，急诊来了。温柔安慰他说：“别怕。”", {"温柔"}),
        ("副局长金融融汇报了资金安排。金融融指出，款项六月到位。", {"金融融"}),
        ("他的女婿江海是渔业局的职员。江海常说：“该歇歇了。”", {"江海"}),
        ("柳如是是名妓。柳如是写了一首诗。", {"柳如是"}),
        ("他的弟弟秦二爷铸了那把刀。邻居蒋大妈不信。", {"秦二爷", "蒋大妈"}),
        ("技术员时雨预测，下周有雨。时雨建议农民抢种。", {"时雨"}),
        ("长子叶辰，自幼习武。叶辰中的是寒毒。", {"叶辰"}),
    ],
)
def test_a_role_and_acts_show_a_person_whose_name_contains_a_word(text: str, expected: set[str]) -> None:
    assert find_people(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "老师高兴地说，大家马上走。",
        "韩国人很高兴，韩国队赢了。记者在韩国说，比赛很精彩。",
        "黄金很贵，金融很难。白天方便，江水很清。",
        "一个叫花子拿来一块玉。叫花子说，玉是他的。",
    ],
)
def test_words_that_look_like_names_are_no_persons(text: str) -> None:
    assert find_people(text) == set()


def test_a_country_stays_a_country_beside_a_person_whose_name_begins_with_it() -> None:
    types = find_types("总设计师韩国栋介绍，他去过韩国。韩国栋说，韩国很远。")
    assert types == {"韩国栋": "PERSON", "韩国": "GEO"}
