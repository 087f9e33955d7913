"""Persons that a title or "called" shows once, and names of other kinds; jieba is needed."""

import pytest

from graphrag_pipeline.indexing.extraction.names.chinese.cjk import find_chinese_names
from graphrag_pipeline.indexing.extraction.names.chinese.titled_people import find_families, find_foreign_people
from graphrag_pipeline_tests.support.chinese_names import find_people, find_types

pytest.importorskip("jieba")


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("叛军在河口被水师提督兼捕头卢长海抓住。", {"卢长海"}),
        ("庙里的和尚净尘每天扫地，丫鬟春杏给他送饭。", {"净尘", "春杏"}),
        ("放火的人是东家的仆人阿福。", {"阿福"}),
        ("她的父亲左伯年去世以后，药铺关了门。", {"左伯年"}),
        ("从前有一个名叫江小楼的年轻画家来到这里。", {"江小楼"}),
        ("船上的医生叫白若云，她很年轻。", {"白若云"}),
        ("传教士柯德理、大学士倭仲的门生都来了。", {"柯德理", "倭仲"}),
        ("领头的叫许不归，摔断了腿。", {"许不归"}),
        ("她的手下邓铁衣走了。", {"邓铁衣"}),
        ("“邓五刀，你又来了。”他说。", {"邓五刀"}),
        ("老师高兴地说，老师从北方来，县长马上去。", set()),
        ("医生建议他休息，记者问他为什么。", set()),
    ],
)
def test_a_person_behind_a_title_is_found_though_named_once(text: str, people: set[str]) -> None:
    assert find_people(text) == people


def test_names_in_traditional_characters_are_found_and_stay_as_written() -> None:
    text = "富商錢萬里想買下沈家的茶山，沈德昌不肯。雲嶺鎮在青蘭江邊，她看著江水，著名的畫家來了。"
    names, types = find_chinese_names(text, [0])
    assert types == {
        "錢萬里": "PERSON", "沈德昌": "PERSON", "沈家": "ORGANIZATION", "雲嶺鎮": "GEO", "青蘭江": "GEO",
    }  # fmt: skip
    assert all(text[name.start : name.end] == name.form for name in names)


def test_both_sets_of_characters_in_one_document_keep_their_forms() -> None:
    types = find_types("蕭炎說，他要走了。萧炎说，他回来了。")
    assert types == {"蕭炎": "PERSON", "萧炎": "PERSON"}


def test_a_name_with_dots_is_one_name_without_its_address() -> None:
    cut = {"从哈利": ["从", "哈利"], "詹姆斯先生": ["詹姆斯", "先生"]}.__getitem__
    assert find_foreign_people("从哈利·詹姆斯先生", cut) == {"哈利·詹姆斯"}
    assert find_types("哈利·詹姆斯先生从伦敦赶来，观看《牡丹亭》。") == {
        "哈利·詹姆斯": "PERSON", "伦敦": "GEO", "牡丹亭": "CONCEPT",
    }  # fmt: skip


def test_a_family_is_named_by_the_surname_of_a_person() -> None:
    assert find_families("沈家的茶山，大家回家，张家口很远", ["沈德昌", "张三"]) == {"沈家"}


def test_rare_words_before_a_kind_of_place_are_places_and_common_ones_are_none() -> None:
    text = (
        "白浪城在大海的北岸。他每年都在望海亭喝酒，不敢再来青石镇闹事。附近村里有一座古庙，他去过那座小城，把东西放下。"
    )
    assert find_types(text) == {"白浪城": "GEO", "望海亭": "GEO", "青石镇": "GEO"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("耿大海的弟弟耿大江走了。耿大海说，他来了。耿大江说，好。", {"耿大海": "PERSON", "耿大江": "PERSON"}),
        ("学生阿依古丽开发了软件。", {"阿依古丽": "PERSON"}),
        ("公司总工程师祁连成介绍，水位很高。", {"祁连成": "PERSON"}),
        ("老镖师彭九劝他回去。", {"彭九": "PERSON"}),
        ("寺里有一个老僧，法号了凡。左护法厉无疾要他离开。", {"了凡": "PERSON", "厉无疾": "PERSON"}),
        ("石头沉在河底，望仙桥昨天重新通行，他修过望仙桥的桥栏。", {"望仙桥": "GEO"}),
        ("镇上的顺风镖局亮着灯，他把刀交给附近药铺。", {"顺风镖局": "ORGANIZATION"}),
        ("永乐年间的铜镜在古董店里，古董商把它藏在新建泵站。", {}),
    ],
)
def test_names_are_whole_and_eras_shops_and_new_buildings_are_none(text: str, expected: dict[str, str]) -> None:
    assert find_types(text) == expected


def test_houses_and_ridges_that_one_goes_to_are_places_and_a_storey_is_none() -> None:
    types = find_types("他坐在听雨楼上喝茶，又走进了藏刀林，从寒烟谷出来。她家在六楼。")
    assert types == {"听雨楼": "GEO", "藏刀林": "GEO", "寒烟谷": "GEO"}
