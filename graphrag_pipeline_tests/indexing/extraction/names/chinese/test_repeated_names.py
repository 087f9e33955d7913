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
