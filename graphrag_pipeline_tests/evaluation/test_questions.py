"""Files of questions: read, refused with the line, and matched to evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.measurement import Evaluation, Measured
from graphrag_pipeline.evaluation.questions import (
    Question,
    find_evidence,
    find_repeated,
    read_gold,
    read_questions,
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
        ("a.jsonl", "[1]", "line 1: is not a JSON object"),
        ("a.jsonl", '{"evidence": ["a"]}', "line 1: `question` is missing"),
        ("a.jsonl", '{"question": "Who?", "evidence": [1]}', "line 1: `evidence` is not a list of names"),
        (
            "a.jsonl",
            '{"question": "Who?", "anwser": "Ida", "id": 7}',
            "its `anwser` is not read; did you mean `answer`",
        ),
        ("a.jsonl", '\n{"question": "Who?"}', "line 2: 'Who\\?' has no evidence and no answer"),
        ("a.jsonl", '{"question": "Who?", "answers": [{"a": 1}]}', "line 1: `answer` is not a text, or `answers`"),
        ("a.jsonl", '{"question": "Who?", "answers": ["Bob", "Unanswerable"]}', "line 1: a question is either"),
        (
            "a.jsonl",
            '{"question": "Who?", "answer": "a"}\n{"question": "B?", "kind": "odd"}',
            "line 2: `kind` is 'odd'",
        ),
        ("a.jsonl", '{"question": "Who?", "kind": ["local"]}', "line 1: `kind` is .*; write local or global"),
        ("a.jsonl", '{"question": "Who?", "answer": "a", "answers": ["b"]}', "line 1: has both `answer` and `answers`"),
        ("a.csv", "question,answer,answers\nWho?,a,b\n", "line 2: has both `answer` and `answers`"),
        ("a.jsonl", json.dumps({"question": "w" * 9000, "evidence": ["a"]}), "line 1: the question has 9,000"),
        ("a.jsonl", "\n", "has no question"),
        ("a.csv", "text,evidence\nWho?,a\n", "line 1: the heading has no column `question`"),
        ("a.csv", 'question,evidence\n"Who?" x,a\n', "line 2: is not valid CSV"),
        (
            "a.csv",
            "question,answer\nWho is Scrooge, the miser?,a miser\n",
            "line 2: has 3 cells, but the heading has 2",
        ),
        ("a.csv", "question,answer,answer\nWho?,a,b\n", "line 1: the heading has the column `answer` twice"),
        ("a.csv", 'question,answers\nWho?,"[""a miser"", 3"\n', r"line 2: `answers` begins with \[ but is not a JSON"),
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


def test_a_question_asked_twice_is_named() -> None:
    asked = [Question(text, ("a",), place=f"line {n}") for n, text in enumerate(("Who?", "What?", "who? ", "Who?"), 1)]
    assert find_repeated(asked) == ["line 3", "line 4"] and find_repeated(asked[:2]) == []
    found = Evaluation("s", 5, tuple(asked), (), Measured())
    assert found.to_dict()["repeated_questions"] == ["line 3", "line 4"]


def test_evidence_is_a_document_by_path_id_or_title_or_a_text_unit(index: GraphIndex) -> None:
    [document] = [row for row in index.snapshot.table("documents").to_pylist() if row["path"] == "two.txt"]
    names = (document["path"], document["id"], document["title"], document["text_unit_ids"][0])
    found = find_evidence(
        index.snapshot, [Question("Who?", names), Question("What?", ("nowhere.txt",), place="line 2")]
    )
    assert len(set(found.rows[0])) == 1 and found.rows[0][0]
    assert found.rows[1] == (frozenset(),) and found.unknown == ("line 2: 'nowhere.txt'",)
