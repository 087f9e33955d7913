"""Files of questions, their evidence, and the overlap of answers with references."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.questions import (
    Question,
    find_evidence,
    measure_overlap,
    read_gold,
    read_questions,
    rouge_l,
    rouge_tokens,
    squad_tokens,
    token_f1,
    write_questions,
)
from graphrag_pipeline.query.index.graph_index import GraphIndex


def put(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_jsonl_and_csv_give_the_same_questions(tmp_path: Path) -> None:
    rows = [{"question": "Who, then?", "evidence": ["a.txt", "b.txt"]}, {"question": "What?", "evidence": ["c.txt"]}]
    jsonl = put(tmp_path, "gold.jsonl", "\n\n".join(json.dumps(row) for row in rows))
    csv = put(tmp_path, "gold.csv", 'question,evidence\n"Who, then?",a.txt | b.txt\nWhat?,"[""c.txt""]"\n')
    found = [[(q.question, q.evidence) for q in read_gold(path)] for path in (jsonl, csv)]
    assert found[0] == found[1] == [("Who, then?", ("a.txt", "b.txt")), ("What?", ("c.txt",))]
    assert [q.place for q in read_gold(jsonl)] == [f"{jsonl}, line 1", f"{jsonl}, line 3"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"question": "Who?", "evidence": ["a"]}\n{"question"', "line 2: is not a JSON object"),
        ("a.jsonl", "[1]", "line 1: `the line` cannot be used"),
        ("a.jsonl", '{"evidence": ["a"]}', "line 1: `question` cannot be used: Field required"),
        ("a.jsonl", '{"question": "Who?", "evidence": [1]}', "line 1: `evidence` cannot be used"),
        ("a.jsonl", '\n{"question": "Who?"}', "line 2: 'Who\\?' has no evidence and no answer"),
        ("a.jsonl", '{"question": "Who?", "answers": [{"a": 1}]}', "line 1: `answers` cannot be used"),
        ("a.jsonl", '{"question": "Who?", "answers": ["Bob", "Unanswerable"]}', "line 1: a question is either"),
        (
            "a.jsonl",
            '{"question": "Who?", "answer": "a"}\n{"question": "B?", "kind": "odd"}',
            "line 2: `kind` cannot be used: Input should be '', 'local'",
        ),
        ("a.jsonl", '{"question": "Who?", "answer": "a", "answers": ["b"]}', "line 1: has both `answer` and `answers`"),
        ("a.csv", "question,answer,answers\nWho?,a,b\n", "line 2: has both `answer` and `answers`"),
        (
            "a.jsonl",
            json.dumps({"question": "w" * 9000, "evidence": ["a"]}),
            "line 1: `question` cannot be used",
        ),
        ("a.jsonl", "\n", "has no question"),
        ("a.csv", "text,evidence\nWho?,a\n", "line 2: `question` cannot be used"),
        ("a.csv", 'question,evidence\n"Who?" x,a\n', "line 2: is not valid CSV"),
        (
            "a.csv",
            "question,answer\nWho is Scrooge, the miser?,a miser\n",
            "line 2: has more cells than the heading",
        ),
        ("a.csv", 'question,answers\nWho?,"[""a miser"", 3"\n', r"line 2: a cell begins with \[, but is no JSON"),
        ("a.jsonl", '{"question": "Who?", "answer": "..."}', "line 1: the reference answer '...' has no word"),
        ("missing.jsonl", None, "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_line(
    tmp_path: Path, name: str, text: str | None, message: str
) -> None:
    if text is not None:
        put(tmp_path, name, text)
    with pytest.raises(PipelineError, match=message):
        read_gold(tmp_path / name)


def test_written_questions_are_read_back(tmp_path: Path) -> None:
    found = [Question("Who?", ("a", "b"), ("Bob.",), "local"), Question("Wozu? \u201cSo\u201d", kind="global")]
    found += [Question("How many?", answers=("three", "3")), Question("Where?", answers=("unanswerable",))]
    write_questions(tmp_path / "out.jsonl", found)
    read = read_questions(tmp_path / "out.jsonl")
    assert [(q.question, q.evidence, q.answers, q.kind) for q in read] == [
        (q.question, q.evidence, q.answers, q.kind) for q in found
    ]


def test_answers_are_read_from_both_columns_and_file_forms(tmp_path: Path) -> None:
    rows = [
        {"question": "How many?", "answer": "", "answers": [3, "three", "three "]},
        {"question": "Who?", "answers": "Bob"},
        {"question": "Where?", "answer": " Unanswerable"},
    ]
    jsonl = put(tmp_path, "gold.jsonl", "\n".join(json.dumps(row) for row in rows))
    csv = put(tmp_path, "gold.csv", "question,answer,answers\nHow many?,,3|three\nWho?,,Bob\nWhere?,unanswerable,\n")
    for path in (jsonl, csv):
        questions = read_gold(path)
        assert [q.answers for q in questions] == [("3", "three"), ("Bob",), ("unanswerable",)]
        assert [q.is_unanswerable for q in questions] == [False, False, True]


def test_evidence_is_a_document_by_path_id_or_title_or_a_text_unit(index: GraphIndex) -> None:
    [document] = [row for row in index.snapshot.table("documents").to_pylist() if row["path"] == "two.txt"]
    names = (document["path"], document["id"], document["title"], document["text_unit_ids"][0])
    found = find_evidence(
        index.snapshot, [Question("Who?", names), Question("What?", ("nowhere.txt",), place="line 2")]
    )
    assert len(set(found.rows[0])) == 1 and found.rows[0][0]
    assert found.rows[1] == (frozenset(),) and found.unknown == ("line 2: 'nowhere.txt'",)


texts = st.lists(
    st.sampled_from(["Bob", "the", "clerk", "Tim's", "goose,", "15", "萧炎", "a", "!", "Straße"]), max_size=12
).map(" ".join)


@given(texts, texts)
def test_both_figures_are_symmetric_shares_and_1_on_equality(one: str, other: str) -> None:
    for tokens, figure in ((squad_tokens, token_f1), (rouge_tokens, rouge_l)):
        value = figure(tokens(one), tokens(other))
        assert 0 <= value <= 1 and value == figure(tokens(other), tokens(one))
        assert figure(tokens(one), tokens(one)) == 1
    assert rouge_l(squad_tokens(one), squad_tokens(other)) <= token_f1(squad_tokens(one), squad_tokens(other))


@given(texts, st.lists(texts, min_size=1, max_size=3), texts)
def test_another_accepted_answer_never_lowers_a_figure(answer: str, references: list[str], more: str) -> None:
    one, two = measure_overlap(answer, references), measure_overlap(answer, [*references, more])
    assert measure_overlap(answer, [*references, answer]).f1 == 1
    if all(part.isascii() for part in (answer, more, *references)):  # the same language is recognized
        assert two.f1 >= one.f1 and two.rouge_l >= one.rouge_l and two.is_contained >= one.is_contained


@pytest.mark.parametrize(
    ("answer", "reference", "f1", "rouge"),
    [
        ("Bob Cratchit", "the clerk was Bob Cratchit", 2 / 3, 4 / 7),
        ("a goose and a pudding", "they ate a goose, then the pudding", 0.5, 0.5),
        ("Scrooge's clerk", "the clerk of Scrooge", 0.4, 2 / 7),
        ("The Denver Broncos!", "Denver Broncos", 1.0, 0.8),
        ("萧炎是萧家的少年", "萧炎", 0.4, 0.4),
        ("", "goose", 0.0, 0.0),
    ],
)
def test_figures_are_those_of_the_published_scripts(answer: str, reference: str, f1: float, rouge: float) -> None:
    """F1 as SQuAD's evaluation script computes it; ROUGE-L as rouge-score 0.1.2 does, but for Chinese."""
    found = measure_overlap(answer, [reference])
    assert (found.f1, found.rouge_l) == (pytest.approx(f1), pytest.approx(rouge))


def test_an_answer_contains_a_reference_as_whole_words() -> None:
    assert measure_overlap("He paid fifteen shillings a week.", ["Fifteen shillings"]).is_contained
    assert not measure_overlap("He paid fifteen shilling.", ["fifteen shillings"]).is_contained
    assert measure_overlap("Who knows", ["Bob", "knows"]).is_contained
