"""Basic search: words first, a little of the vectors, in any script; never below full text alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline.evaluation.questions import Question, find_evidence
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.search.basic import select_basic
from graphrag_pipeline.settings.settings import BasicSearchSettings
from graphrag_pipeline_tests.bench import retrieval
from graphrag_pipeline_tests.support.roots import build_tables, open_built


def first_title(index: GraphIndex, question: str) -> str:
    context = select_basic(index, question, BasicSearchSettings()).context
    return context.text_units[0].document_title


def test_the_text_unit_with_the_words_comes_first(carol: GraphIndex) -> None:
    context = select_basic(carol, "Ignorance and Want", BasicSearchSettings(top_k=3)).context
    assert "This boy is Ignorance" in context.text_units[0].text
    scores = [unit.score for unit in context.text_units]
    assert scores == sorted(scores, reverse=True)
    assert not context.entities


def test_a_question_without_words_finds_nothing(carol: GraphIndex) -> None:
    assert select_basic(carol, "\U0001f384", BasicSearchSettings()).context.is_empty


def test_the_budget_holds(carol: GraphIndex) -> None:
    context = select_basic(carol, "Scrooge", BasicSearchSettings(max_context_tokens=2500)).context
    assert 1 <= len(context.text_units) <= 2


@pytest.mark.parametrize(
    ("question", "title"),
    [("萧炎是谁？", "一"), ("药老住在哪里？", "二"), ("谁在写信？", "四"), ("薰儿写了什么？", "四")],
)
def test_a_chinese_question_finds_the_text_that_names_who_is_asked_about(
    story: GraphIndex, question: str, title: str
) -> None:
    assert first_title(story, question).startswith(title)


def test_a_document_is_found_by_its_title(tmp_path: Path) -> None:
    texts = {"Billy Elliot.txt": "The film is about a boy.", "b.txt": "A boy saw a film about it."}
    with open_built(tmp_path, texts) as index:
        assert first_title(index, "What is Billy Elliot about?").startswith("Billy Elliot")
        unit = select_basic(index, "Billy Elliot", BasicSearchSettings()).context.text_units[0]
        assert unit.text == "The film is about a boy.", "the title is searched, not shown"


@pytest.mark.thorough  # bench `retrieval` measures it, too
def test_basic_is_not_below_full_text_alone(tmp_path: Path) -> None:
    questions = retrieval.read_questions()
    gold = {title for question in questions for title in question["gold"]}
    passages = sorted(retrieval.read_passages(), key=lambda passage: passage["title"] not in gold)[:300]
    retrieval.write_passages_root(tmp_path / "root", passages)
    build_tables(Root(tmp_path / "root"), tuple(ALL_STAGES))
    with GraphIndex.open(tmp_path / "root") as index:
        golden = [Question(question["question"], tuple(question["gold"])) for question in questions]
        asked, evidence = [one.question for one in golden], find_evidence(index.snapshot, golden).rows
        by_words, by_basic = (
            retrieval.measure_recall(index, asked, evidence, retrieval.RANKERS[name]) for name in retrieval.FLOORS
        )
    assert by_basic >= by_words
