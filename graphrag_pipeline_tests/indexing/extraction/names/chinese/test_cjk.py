import builtins
import logging
from typing import Any

import pyarrow as pa
import pytest

from graphrag_pipeline.indexing.extraction.extracted_graph import extract_graph
from graphrag_pipeline.indexing.extraction.names.chinese import cjk as cjk_names
from graphrag_pipeline.indexing.extraction.names.chinese.cjk import find_chinese_names
from graphrag_pipeline.indexing.graph.merge import merge_graph
from graphrag_pipeline.query.names import NameIndex
from graphrag_pipeline.settings.settings import ExtractionSettings, GraphSettings
from graphrag_pipeline_tests.support.paths import TEST_DATA

STORY = (TEST_DATA / "extraction" / "chinese_story.txt").read_text(encoding="utf-8")


def test_chinese_names_are_found_with_their_types() -> None:
    pytest.importorskip("jieba")
    names, types = find_chinese_names(STORY, [0])
    assert types == {
        "萧炎": "PERSON", "萧战": "PERSON", "林老先生": "PERSON", "王芳": "PERSON", "李小雨": "PERSON",
        "张国强": "PERSON", "陈教授": "PERSON", "青山镇": "GEO", "北京": "GEO", "四川": "GEO", "上海": "GEO",
        "成都": "GEO", "石桥": "GEO", "北京大学": "ORGANIZATION",
    }  # fmt: skip
    assert all(STORY[name.start : name.end] == name.form for name in names)
    assert len([name for name in names if name.form == "萧炎"]) == STORY.count("萧炎")


def find(name: str) -> dict[str, str]:
    return find_chinese_names((TEST_DATA / "extraction" / name).read_text(encoding="utf-8"), [0])[1]


def test_people_of_a_novel_that_no_dictionary_has_are_persons_and_sects_are_organizations() -> None:
    pytest.importorskip("jieba")
    people = "萧炎 萧战 药老 药尘 纳兰嫣然 纳兰桀 云韵 葛叶 萧薰儿 雅妃 谷尼 小医仙 美杜莎女王"
    groups, places = "萧家 云岚宗 米特尔拍卖行", "乌坦城 魔兽山脉 青山镇 加玛帝国"
    kinds = {"PERSON": people, "ORGANIZATION": groups, "GEO": places}
    assert find("chinese_novel.txt") == {name: kind for kind, names in kinds.items() for name in names.split()}


def test_people_of_another_novel_are_found() -> None:
    pytest.importorskip("jieba")
    types = find("chinese_sect.txt")
    people = {"林动", "林啸", "林青檀", "青檀", "小貂", "天妖貂", "应欢欢", "应玄子", "绫清竹"}
    assert {name for name, kind in types.items() if kind == "PERSON"} >= people
    assert types["道宗"] == "ORGANIZATION" and types["青阳镇"] == "GEO"
    assert len(types) <= len(people) + 5


IMMORTALS = (
    "七玄门坐落在彩霞山上。韩立是七玄门的记名弟子。他师父的真名叫做墨居仁。厉飞雨站在山门前等他。\n\n"
    "黄枫谷的李化元看着韩立，没有说话。南宫婉是掩月宗的长老，张铁从小住在青牛镇。余子童带着一队人追赶他。\n\n"
    "曲老在房里炼制筑基丹，人称曲魂。小李说，地铁很快。韩立登上天南山。贾天龙派人包围了彩霞山。\n\n"
    "王耀宗是一位退休的教师，他住在武侯区。新院长是他的老师。萧家少主为他炼制了破厄丹。"
)


def test_people_places_and_sects_that_are_named_once_are_found_whole() -> None:
    pytest.importorskip("jieba")
    people = "韩立 墨居仁 厉飞雨 李化元 南宫婉 张铁 余子童 曲老 曲魂 小李 贾天龙 王耀宗"
    kinds = {"PERSON": people, "ORGANIZATION": "七玄门 掩月宗 萧家", "GEO": "彩霞山 黄枫谷 青牛镇 天南山 武侯区"}
    expected = {name: kind for kind, names in kinds.items() for name in names.split()}
    assert find_chinese_names(IMMORTALS, [0])[1] == expected


def test_latin_names_in_a_chinese_document_are_found_too() -> None:
    pytest.importorskip("jieba")
    text = (TEST_DATA / "extraction" / "chinese_minutes.txt").read_text(encoding="utf-8")
    documents = pa.table({"id": ["d"], "title": ["minutes"], "text": [text]})
    units = pa.table({"id": ["u"], "document_id": ["d"], "start": [0], "end": [len(text)]})
    mentions = extract_graph(documents, units, ExtractionSettings())["entity_mentions"]
    types = dict(zip(mentions["name"].to_pylist(), mentions["type"].to_pylist(), strict=True))
    assert types.items() >= {
        "陈立新": "PERSON", "欧阳雪": "PERSON", "周明远": "PERSON", "Alice Johnson": "PERSON", "上海": "GEO",
        "伦敦": "GEO", "Redwood Systems": "ORGANIZATION", "北京大学": "ORGANIZATION",
    }.items()  # fmt: skip


def test_a_question_about_a_chinese_story_finds_its_hero() -> None:
    pytest.importorskip("jieba")
    documents = pa.table({"id": ["d"], "title": ["story"], "text": [STORY]})
    units = pa.table({"id": ["u"], "document_id": ["d"], "start": [0], "end": [len(STORY)]})
    mentions = extract_graph(documents, units, ExtractionSettings())
    entities = merge_graph(*mentions.values(), GraphSettings())["entities"]
    found = NameIndex(entities["title"].to_pylist(), entities["names"].to_pylist()).find("萧炎是谁？")
    assert [entities["title"][row].as_py() for row in found] == ["萧炎"]


def test_without_jieba_a_chinese_document_has_no_names_and_the_log_gives_the_reason(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real_import = builtins.__import__

    def fail(name: str, *rest: Any) -> Any:
        if name.startswith("jieba"):
            raise ImportError(name)
        return real_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", fail)
    cjk_names._load_jieba.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert find_chinese_names(STORY, [0]) == ([], {})
    cjk_names._load_jieba.cache_clear()
    assert "graphrag-pipeline[cjk]" in caplog.text


def test_acts_animals_and_parts_of_places_are_no_places() -> None:
    pytest.importorskip("jieba")
    text = (
        "顾长风骑着一匹白马进了临安城。城门口贴着朝廷的告示，马拴在树下。顾长风想起去年回国的时候，"
        "他在北京见到了徐南平教授。贺连山的女儿说：“白马跑得快。”顾长风没有说话，把马拴在门前。"
    )
    types = find_chinese_names(text, [0])[1]
    assert types == {"顾长风": "PERSON", "临安城": "GEO", "北京": "GEO", "徐南平": "PERSON", "贺连山": "PERSON"}


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("陈泰山是村里的木匠。王衡山是他的邻居。", {"陈泰山": "PERSON", "王衡山": "PERSON"}),
        ("陳泰山是村裡的木匠。", {"陳泰山": "PERSON"}),
        ("周万山是县城最大的药材商人，为人吝啬。", {"周万山": "PERSON"}),
        ("马德海的儿子马长江在铁路上当司机。", {"马德海": "PERSON", "马长江": "PERSON"}),
        ("李青海说，赵黄河的妻子来了。", {"李青海": "PERSON", "赵黄河": "PERSON"}),
        ("木匠陈泰山住在村里，每年登上泰山一次。", {"陈泰山": "PERSON", "泰山": "GEO"}),
        ("泰山是五岳之一。长江很长。", {"泰山": "GEO", "五岳": "GEO", "长江": "GEO"}),
        ("沈清荷常常一个人上山采药。", {"沈清荷": "PERSON"}),
        ("退休的中学教师徐文渊坐在窗边。", {"徐文渊": "PERSON"}),
    ],
)
def test_a_given_name_that_is_a_place_is_a_persons_where_the_text_shows_one(text: str, types: dict[str, str]) -> None:
    pytest.importorskip("jieba")
    assert find_chinese_names(text, [0])[1] == types


def test_the_name_of_a_ship_is_not_a_person() -> None:
    pytest.importorskip("jieba")
    text = (
        "她名叫林佩蘭，是女教師。父子兩人造好了一艘新船，取名「佩蘭號」。林佩蘭說：「好。」佩蘭號出海了，佩蘭號很快。"
    )
    assert find_chinese_names(text, [0])[1] == {"林佩蘭": "PERSON"}


def test_firms_and_schools_have_whole_names() -> None:
    pytest.importorskip("jieba")
    text = "星澜科技在苏州办厂。星澜科技的顾问在白马涧散步，市科技局给了贷款。红岭资本投了钱，红岭资本很大。"
    types = find_chinese_names(text, [0])[1]
    assert types == {
        "星澜科技": "ORGANIZATION", "苏州": "GEO", "白马涧": "GEO", "红岭资本": "ORGANIZATION",
        "市科技局": "ORGANIZATION",
    }  # fmt: skip


def test_sects_that_a_text_repeats_are_bodies_and_a_district_is_no_person() -> None:
    pytest.importorskip("jieba")
    text = "听说寒江盟封了江面。寒江盟盟主来了，他投了寒江盟。云川市很大，云川的人多，麓谷高新区和白鹭洲都在云川市。"
    types = find_chinese_names(text, [0])[1]
    assert types["寒江盟"] == "ORGANIZATION"
    assert {types.get(name) for name in ("云川", "高新区", "白鹭洲")} <= {None, "GEO"}
