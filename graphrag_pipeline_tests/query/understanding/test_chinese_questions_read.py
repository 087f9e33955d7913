import pytest

from graphrag_pipeline.query.understanding.chinese_definitions import (
    ChineseQuestion,
    asks_in_chinese,
    rate_person,
    read_chinese_question,
)


@pytest.mark.parametrize(
    ("question", "kind", "name", "verb"),
    [
        ("誰提高了鹽稅？", "subject", "", "提高了盐税"),
        ("是谁写的这封信？", "subject", "", "写的这封信"),
        ("韩江被谁抓住了？", "subject", "", "抓住了韩江"),
        ("林安娶了谁？", "object", "", "林安娶了"),
        ("林安的舅舅是誰？", "holder", "林安", "舅舅"),
        ("林安在哪里遇到山贼？", "place", "林安", "遇到山贼"),
        ("白石鎮在哪裡？", "place", "白石镇", ""),
        ("大会什么时候召开？", "date", "大会", "召开"),
        ("林安今年多大？", "age", "林安", ""),
    ],
)
def test_a_chinese_question_is_read(question: str, kind: str, name: str, verb: str) -> None:
    assert read_chinese_question(question) == ChineseQuestion(kind, name, verb)


def test_other_questions_are_left_to_other_readers() -> None:
    for question in ("Who is 林安?", "Who wrote it?", "林安为什么离开？", "这本书讲什么？"):
        assert read_chinese_question(question) is None and not asks_in_chinese(question)
    assert read_chinese_question("林安是谁？") is None and asks_in_chinese("林安是谁？")


def test_the_plainest_sentence_about_a_person_counts_most() -> None:
    sentences = (
        "林安是书院的学生。",
        "那一年，林安是学生。",
        "有一个名叫林安的画师。",
        "捕头林安走了。",
        "他见过林安。",
    )
    ratings = [rate_person("林安", sentence) for sentence in sentences]
    assert ratings == sorted(ratings, reverse=True) and len(set(ratings)) == 5 and ratings[-1] == 0
    assert rate_person("葉知秋", "一个名叫叶知秋的画家") == rate_person("叶知秋", "一個名叫葉知秋的畫家") > 0
