import pytest

from graphrag_pipeline.indexing.extraction.names.chinese.cjk import find_chinese_names
from graphrag_pipeline.indexing.extraction.names.chinese.repeated_names import find_repeated_names

TEXT = """那天，铁匠雷大锤和沈大山一起进了黑水镇。章小鱼躲在雷大锤身后。

“路上还好走吗？”章小鱼问沈大山。金色的阳光照着金色的雪。沈大山的父亲住在青河村，离白石岭不远。
"""


def found(text: str) -> set[str]:
    return find_repeated_names(text, {"雷", "沈", "章", "金", "欧阳"}, {"金色": 900}, "问|说", "铁匠")


def test_repeated_names_after_a_surname_are_persons() -> None:
    assert found(TEXT) == {"雷大锤", "沈大山", "章小鱼"}


def test_a_name_needs_repetition_different_neighbours_and_a_sign_of_a_person() -> None:
    assert found("沈大山说，好。") == set()
    assert found("他见沈大山的书。他见沈大山的书。") == set()
    assert found("买沈大山的书，看沈大山里的雪。") == set()


def test_people_and_places_that_the_segmenter_cuts_are_whole() -> None:
    pytest.importorskip("jieba")
    types = find_chinese_names(TEXT, [0])[1]
    assert {name for name, kind in types.items() if kind == "PERSON"} == {"雷大锤", "沈大山", "章小鱼"}
    assert {"黑水镇", "青河村"} <= {name for name, kind in types.items() if kind == "GEO"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("瑶瑶拉着他的衣角，怯生生地说道：“哥，我怕。”他抱起瑶瑶，轻轻拍了拍。", {"瑶瑶"}),
        ('琉儿走上台阶，轻声说道："姑姑，我来了。"琉儿的鞋湿了。', {"琉儿"}),
        ("苓儿是医馆的小姐。老板娘找不到苓儿，急得直跺脚。", {"苓儿"}),
        ("“走吧。”凝香说。她的丈夫看了凝香一眼。", {"凝香"}),
        ("他遇到了小毒仙。小毒仙擅长用药。", {"小毒仙"}),
    ],
)
def test_a_name_without_a_surname_counts_if_it_speaks_or_is_defined_and_repeated(text: str, expected: set[str]) -> None:
    pytest.importorskip("jieba")
    assert {name for name, kind in find_chinese_names(text, [0])[1].items() if kind == "PERSON"} == expected


@pytest.mark.parametrize(
    "text",
    [
        "黑衣人冷笑道：“交出来！”黑衣人的刀很快。工作人员说：“请排队。”工作人员的脸色不好。",
        "朗声说道：“好！”厉声喝道：“站住！”朗声的人是他。",
        "区块链是许多公司的选择。区块链的用户很多。小企业擅长创新。",
        "琉儿说道：“好。”",
        "小师妹笑道：“师兄好。”小师弟也笑道：“师姐好。”小师妹的剑很快。",
    ],
)
def test_what_speaks_without_being_a_name_or_is_named_once_is_no_person(text: str) -> None:
    pytest.importorskip("jieba")
    assert "PERSON" not in find_chinese_names(text, [0])[1].values()
