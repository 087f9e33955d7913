"""Persons that a predicate shows in one sentence, and words that only look like names; jieba is needed."""

import pytest

from graphrag_pipeline.indexing.extraction.names.chinese.subjects import find_subjects, is_thing
from graphrag_pipeline_tests.support.chinese_names import find_people, find_types

pytest.importorskip("jieba")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("林动是青阳镇林家的子弟。林动发誓要打败林琅天。", {"林动", "林琅天"}),
        ("顾清寒是天剑宗的大师姐，自幼跟随师父陆长风习剑。", {"顾清寒", "陆长风"}),
        ("韩立是一个普通的山村少年。韩立拜墨大夫为师。", {"韩立", "墨大夫"}),
        ("唐三是唐门的外门弟子。", {"唐三"}),
        ("何俊傑是班上最調皮的男生。", {"何俊傑"}),
        ("老人看见沈星河站在门口，孩子们很喜欢赵铁柱。", {"沈星河", "赵铁柱"}),
        ("刘思思在工厂工作了十年。王春花和妹妹住在城外。", {"刘思思", "王春花"}),
        ("民警常远山和徒弟晋朝阳赶到现场。", {"常远山", "晋朝阳"}),
        ("傅云生拜谢洪四海。洪四海笑道：“走吧。”", {"傅云生", "洪四海"}),
        ("镇政府的干部牛卫国送来了煤。牛卫国说，明年再来。", {"牛卫国"}),
        ("贺小舟回到家，和钟灵一起办厂。钟灵说，好。贺小舟娶了钟灵。", {"贺小舟", "钟灵"}),
        ("他是前任宰相裴松的孙子。", {"裴松"}),
        ("宋神宗读了那首诗，下令放人。", {"宋神宗"}),
    ],
)
def test_a_person_named_once_is_found_by_what_is_said_of_them(text: str, expected: set[str]) -> None:
    assert find_people(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "他在山洞里捡到一枚石符。石符中住着一只妖兽。",
        "三十年河东，三十年河西，莫欺少年穷！",
        "单位送来一面锦旗，许多人在看。周围的群众都鼓掌，何必着急。",
        "曾派人去打听，也曾任职于报社。于是大家走了。",
        "左护法和右护法都来了，任长老没有来。",
        "部门的成员、外门弟子和专门的师傅都在。",
    ],
)
def test_things_sayings_and_common_words_are_no_names(text: str) -> None:
    assert find_types(text) == {}


def test_sects_schools_and_authorities_are_organizations() -> None:
    types = find_types(
        "唐三是唐门的外门弟子。丹堂长老来到天剑宗。慶雲班进了城，慶雲班很有名。\n"
        "北城分局在江州市，宜兰高中很远。投资方远山资本来了。"
    )
    assert {name for name, kind in types.items() if kind == "ORGANIZATION"} == {
        "唐门", "丹堂", "天剑宗", "北城分局", "宜兰高中", "远山资本", "慶雲班",
    }  # fmt: skip
    assert types["江州市"] == "GEO"
    assert find_types("他去了静心庵，也走过朱雀大街。") == {"静心庵": "GEO", "朱雀大街": "GEO"}


def test_the_predicate_shows_where_a_name_ends() -> None:
    words = {"发誓": "v", "被": "p", "来到": "v", "是": "v"}

    def cut(text: str) -> list[str]:
        return [text[:2], text[2:]] if text[:2] in words else [text[:1], text[1:]]

    def found(text: str) -> set[str]:
        return find_subjects(text, {}, words, cut)

    assert found("徐凤年被关在山里。徐明来到山里。") == {"徐凤年", "徐明"}
    assert found("林动发誓报仇。") == {"林动"}
    assert found("石桥被水冲走了。") == set()  # a surname that begins common words needs the predicate of a person
    assert found("石桥发誓报仇。") == {"石桥"}


def test_a_thing_is_counted_or_has_an_inside() -> None:
    assert is_thing("石符", "捡到一枚石符") and is_thing("石符", "石符中住着")
    assert not is_thing("石符", "石符说，一张石符的照片")
