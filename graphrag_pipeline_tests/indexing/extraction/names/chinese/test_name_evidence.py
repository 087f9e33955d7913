"""Whole Chinese names, and words that look like names, by what the document shows; jieba is needed."""

import pytest

from graphrag_pipeline.indexing.extraction.names.chinese.name_evidence import cut_adverb, find_sects
from graphrag_pipeline_tests.support.chinese_names import find_people, find_types

pytest.importorskip("jieba")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("林琅天冷笑一声，转身走向擂台。众人屏住呼吸。", {"林琅天"}),  # cut after 林琅, which is a word
        ("这一战，林啸击败了林琅天。林琅天是百年难遇的天才。", {"林啸", "林琅天"}),
        ("林琅天拜应玄子为师，学习封印之术。三年以后，他封印了北荒的妖王。", {"林琅天", "应玄子"}),
        ("她的父亲欧阳烈曾是道宗的长老，欧阳明月从小跟着父亲学医。", {"欧阳烈", "欧阳明月"}),
        ("会议由主席刘振华主持。刘振华说，严格管理是关键。", {"刘振华"}),
        ("你去一趟，把这封信交给苏小荷。苏小荷收好书信。", {"苏小荷"}),
    ],
)
def test_a_name_is_whole_and_a_verb_or_a_thing_is_no_name(text: str, expected: set[str]) -> None:
    assert find_people(text) == expected


def test_a_word_that_may_be_a_surname_needs_a_sign_of_a_person() -> None:
    seals = "古老的封印在石殿深处，谁也无法打开。封印松动的消息传来。"
    assert not find_people(seals)
    assert find_people("家长代表黄敏也在会上发言，黄敏希望延长服务时间。") == {"黄敏"}


def test_a_person_whose_name_ends_like_a_mountain_is_no_place() -> None:
    text = "林琅天的祖父林震山接待了他们。林震山说，封印正是出自他手。林琅天跪在林震山闭关的石门外。"
    assert find_types(text)["林震山"] == "PERSON"


def test_a_sect_is_whole_and_any_place_is_no_place() -> None:
    text = "温如玉投靠了血月教。从此以后，血月教散了，整个大陆都安静下来。温如玉说，他不后悔。"
    assert find_types(text) == {"温如玉": "PERSON", "血月教": "ORGANIZATION"}
    assert find_sects(["血月"], "血月教散了，血月出来了") == {}


def test_an_adverb_that_always_follows_belongs_to_the_name() -> None:
    assert find_people("药店老板涂志刚不高兴。涂志刚只好敲门，涂志刚的母亲在卫生院。") == {"涂志刚"}
    assert find_people("林啸正看着他。林啸说，好。林啸正要走。") == {"林啸"}


def test_an_adverb_is_cut_only_from_a_name_that_stays_whole() -> None:
    doubles = {"欧阳"}
    assert [cut_adverb(word, doubles) for word in ("欧阳烈曾", "欧阳正", "林啸便", "林正")] == [
        "欧阳烈", "欧阳正", "林啸", "林正",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("掌柜苏禾陪着客人进了后院。", {"苏禾"}),
        ("长老褚岩护着众人退到洞口，弟子鲁青跟着跑了出来。", {"褚岩", "鲁青"}),
        ("队长郝明带领村民上堤，主任邹洁陪同专家到场。", {"郝明", "邹洁"}),
        ("上午，弟子方守随同众人下了船。", {"方守"}),
        ("校长张守望同老师们谈了很久。张守望说，明年再来。", {"张守望"}),  # 望 belongs to the name
    ],
)
def test_a_verb_of_company_is_not_the_end_of_a_name(text: str, expected: set[str]) -> None:
    assert find_people(text) == expected


def test_a_title_of_kinship_alone_is_no_person() -> None:
    text = (
        "小师弟俞安最爱下棋，大师兄却不许。大师兄说：“小师弟，去扫地。”小师弟答道：“是。”二师姐方晴笑了。"
        "小师弟走进后院，俞安的鞋湿了。"
    )
    assert find_people(text) == {"俞安", "方晴"}


def test_a_verb_with_its_object_is_no_place() -> None:
    text = (
        "赵岩曾经威震大陆，无人能敌。霍青是名震大陆的炼药师。丫头方晴吐了吐舌头，又横眉看他。两人歇歇脚，一起吐舌头。"
    )
    assert "GEO" not in find_types(text).values()
    assert {"赵岩", "霍青", "方晴"} <= find_people(text)


def test_a_place_that_begins_with_a_verb_is_a_place() -> None:
    text = "石岩来到玄霸大陆。他去过包头和汕头，曾经在北京住了三年。他老家在定海区，后来搬到望城乡。"
    places = {word for word, kind in find_types(text).items() if kind == "GEO"}
    assert {"玄霸大陆", "包头", "汕头", "北京", "定海区", "望城乡"} <= places
