"""A Chinese document, end to end: the passage that says who a person is answers the question, by every method."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.selection.strategies import STRATEGIES
from graphrag_pipeline_tests.support.paths import TEST_DATA
from graphrag_pipeline_tests.support.roots import built_root

NAMES = ("chinese_novel.txt", "chinese_sect.txt", "chinese_minutes.txt", "chinese_tea.txt")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphIndex]:
    pytest.importorskip("jieba")
    texts = {name: (TEST_DATA / "extraction" / name).read_text(encoding="utf-8") for name in NAMES}
    root = built_root(tmp_path_factory.mktemp("chinese"), texts, stages=ALL_STAGES)
    with GraphIndex.open(root.path) as opened:
        yield opened


def first_passage(index: GraphIndex, question: str, **options: str) -> str:
    return index.search(question, **options).answer.replace("**", "").split("\n- ")[1]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_local_search_answers_who_a_person_is_by_the_passage_that_says_it(index: GraphIndex, strategy: str) -> None:
    answers = [index.search(f"{name}是谁？", strategy=strategy).answer.replace("**", "") for name in ("萧炎", "药老")]
    assert "萧炎是萧家族长萧战的第三个儿子" in answers[0] and "药老原名药尘，曾是大陆上有名的炼药师。" in answers[1]


def test_basic_search_answers_too(index: GraphIndex) -> None:
    assert "纳兰嫣然是纳兰桀的孙女" in index.search("纳兰嫣然是谁？", method="basic").answer.replace("**", "")


def test_a_latin_name_in_a_chinese_document_is_found_by_a_question_in_either_language(index: GraphIndex) -> None:
    for question in ("Who is Alice Johnson?", "Alice Johnson是谁？"):
        assert "来自伦敦的 Alice Johnson 通过视频参加" in first_passage(index, question)


@pytest.mark.parametrize("question", ["賀連城的女兒是誰？", "贺连城的女儿是谁？"])
def test_either_set_of_characters_finds_the_passage(index: GraphIndex, question: str) -> None:
    assert "賀小滿" in first_passage(index, question)
