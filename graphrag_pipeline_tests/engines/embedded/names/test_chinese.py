from __future__ import annotations

import builtins
import logging
from typing import Any

import pytest

from graphrag_pipeline.engines.embedded.names import chinese
from graphrag_pipeline.engines.embedded.names.chinese import find_chinese_names
from graphrag_pipeline_tests.support.paths import TEST_DATA

PEOPLE = {
    "chinese_minutes.txt": ("陈立新",),
    "chinese_story.txt": ("萧炎", "王芳", "张国强"),
}


def find(text: str) -> dict[str, str]:
    return {text[start:end]: kind for start, end, kind in find_chinese_names(text)}


def test_names_have_the_types_of_the_segmenter() -> None:
    pytest.importorskip("jieba")
    assert find("李明昨天在北京会见了王小华。李明说，王小华在北京大学学习。") == {
        "李明": "PERSON", "王小华": "PERSON", "北京": "GEO", "北京大学": "ORGANIZATION",
    }  # fmt: skip


def test_a_name_in_traditional_characters_is_found_as_written() -> None:
    pytest.importorskip("jieba")
    assert find("葉知秋在臺灣。葉知秋說：「好。」").items() >= {"葉知秋": "PERSON", "臺灣": "GEO"}.items()


@pytest.mark.parametrize("file", PEOPLE)
def test_people_of_minutes_and_of_a_story_are_found(file: str) -> None:
    pytest.importorskip("jieba")
    found = find((TEST_DATA / "extraction" / file).read_text(encoding="utf-8"))
    assert {name for name in PEOPLE[file] if found.get(name) == "PERSON"} == set(PEOPLE[file])


def test_without_jieba_a_chinese_document_has_no_names_and_the_log_gives_the_reason(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real_import = builtins.__import__

    def fail(name: str, *rest: Any) -> Any:
        if name.startswith("jieba"):
            raise ImportError(name)
        return real_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", fail)
    chinese.load_jieba.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert find_chinese_names("李明在北京。") == []
    assert "graphrag-pipeline[cjk]" in caplog.text
    chinese.load_jieba.cache_clear()
