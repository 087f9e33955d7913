"""A Chinese document, end to end: the sentence that says who a person is answers the question, by every method."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.selection.strategies import STRATEGIES
from graphrag_pipeline.query.understanding.chinese_definitions import asked_person, defines_person
from graphrag_pipeline_tests.support.paths import TEST_DATA
from graphrag_pipeline_tests.support.roots import make_root

pytestmark = pytest.mark.slow
NAMES = ("chinese_novel.txt", "chinese_sect.txt", "chinese_minutes.txt", "chinese_tea.txt")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphIndex]:
    pytest.importorskip("jieba")
    texts = {name: (TEST_DATA / "extraction" / name).read_text(encoding="utf-8") for name in NAMES}
    root = make_root(tmp_path_factory.mktemp("chinese"), texts)
    run_index(root)
    with GraphIndex.open(root.path) as opened:
        yield opened


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_local_search_answers_who_a_person_is_by_the_sentence_that_says_it(index: GraphIndex, strategy: str) -> None:
    assert "萧炎是萧家族长萧战的第三个儿子" in index.search("萧炎是谁？", strategy=strategy).answer
    assert "药老原名药尘，曾是大陆上有名的炼药师。" in index.search("药老是谁？", strategy=strategy).answer


def test_basic_search_answers_too(index: GraphIndex) -> None:
    assert "萧炎是萧家族长萧战的第三个儿子" in index.search("萧炎是谁？", method="basic").answer
    assert "纳兰嫣然是纳兰桀的孙女" in index.search("纳兰嫣然是谁？", method="basic").answer


def test_a_latin_name_in_a_chinese_document_is_found_by_a_question_in_either_language(index: GraphIndex) -> None:
    for question in ("Who is Alice Johnson?", "Alice Johnson是谁？"):
        assert "来自伦敦的 Alice Johnson 通过视频参加" in index.search(question).answer


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("谁放了火？", "阿旺"),
        ("谁在渡口卖茶？", "阿桂"),
        ("伙计是谁？", "阿旺"),
        ("誰寫了《茶山圖》？", "淨塵"),
        ("贺小满嫁给了谁？", "葉知秋"),
        ("叶知秋的师父是谁？", "淨塵"),
        ("賀連城的女兒是誰？", "賀小滿"),
        ("茶行的掌柜是谁？", "賀連城"),
        ("阿旺在哪里被抓住？", "渡口"),
        ("葉知秋住在哪裡？", "城南的竹林裡"),
        ("鹿溪镇在哪里？", "白鷺江的西岸"),
        ("谁追赶庞九？", "盧四"),
        ("盧四的師父是誰？", "石萬年"),
        ("阿桂的師父是誰？", "石萬年"),
        ("贺连城今年多大？", "五十二歲"),
        ("茶行什么时候失火？", "光緒十二年三月"),
    ],
)
def test_the_first_line_names_what_a_sentence_states_in_either_set_of_characters(
    index: GraphIndex, question: str, name: str
) -> None:
    assert index.search(question).answer.startswith(f"Extractive answer (no model): {name}, by the first passage [1].")


@pytest.mark.parametrize(
    "question",
    [
        "贺连城的妻子是谁？",
        "谁救了贺小满？",
        "羅大成今年多大？",
        "阿旺住在哪里？",
        "谁骂了阿旺？",
        "谁没有学画？",
        "谁写了信？",
        "谁在北京卖茶？",
    ],
)
def test_no_name_is_given_without_a_sentence_that_states_it(index: GraphIndex, question: str) -> None:
    assert "by the first passage" not in index.search(question).answer


def test_who_a_person_is_may_be_said_by_called_or_by_a_title(index: GraphIndex) -> None:
    assert "捕頭羅大成" in index.search("罗大成是谁？").answer.split("\n- ")[1]
    assert "茶行的掌櫃叫賀連城" in index.search("賀連城是誰？").answer.split("\n- ")[1]


def test_a_definition_is_told_from_a_cleft_sentence(tmp_path: Path) -> None:
    assert asked_person("韩立是谁？") == "韩立" and not asked_person("谁是韩立的师父？")
    assert defines_person("韩立", "韩立，字立之，原为七玄门弟子。")
    for cleft in ("韩立是今天早上下山的，他没有说话。", "韩立是第一个走进山门的人。", "韩立是走路来的。"):
        assert not defines_person("韩立", cleft)
    pytest.importorskip("jieba")
    text = "韩立是今天早上下山的，他没有说话。\n\n韩立，字立之，原为七玄门弟子，后来学会炼丹。\n\n张铁说韩立是好人。"
    root = make_root(tmp_path, {"a.txt": text})
    run_index(root)
    with GraphIndex.open(root.path) as opened:
        assert "- 韩立，字立之，原为七玄门弟子，后来学会炼丹。 [1]" in opened.search("韩立是谁？").answer
