from pathlib import Path

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.batch.question_files import BatchQuestion, read_question_file

DEFAULT = BatchQuestion("", "local", filters=("year>=2024",))
EXPECTED = BatchQuestion(
    "Who, then?", "basic", None, ("year>=2024", "source=reuters"), {"budget": 500}, "a"
)  # fmt: skip


def read(tmp_path: Path, name: str, content: str | bytes) -> list[BatchQuestion]:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_question_file(path, DEFAULT)


def test_text_has_a_question_a_line(tmp_path: Path) -> None:
    found = read(tmp_path, "q.txt", "\ufeffWho?\r\n\r\n  萧炎是谁？  \n# no comment")
    assert [one.question for one in found] == ["Who?", "萧炎是谁？", "# no comment"]
    assert {(one.method, one.filters) for one in found} == {("local", ("year>=2024",))}


def test_csv_and_json_lines_have_options_for_each_question(tmp_path: Path) -> None:
    table = (
        "id, question,method,filters,options\n"
        'a,"Who, then?",basic,source=reuters,"{""budget"": 500}"\n'
        ",,,,\n"
        'a,"Who, then?",basic,"[""source=reuters""]","{""budget"": 500}"\n'
    )
    assert read(tmp_path, "q.csv", table) == [EXPECTED, EXPECTED]
    lines = (
        '{"id": "a", "question": "Who, then?", "method": "basic", "filters": ["source=reuters"], '
        '"options": {"budget": 500}}\n"What?"\n'
    )
    assert read(tmp_path, "q.jsonl", lines) == [EXPECTED, BatchQuestion("What?", "local", filters=("year>=2024",))]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{bad", "line 2: is not JSON: '{bad'"),
        ("[1]", "line 2: is neither an object nor a string"),
        ('{"question": "Who?", "filter": "a=b"}', "unknown key 'filter'; did you mean 'filters'?"),
        ('{"question": "Who?", "shade": 1}', "unknown key 'shade'; valid: id, question"),
        ('{"question": 7}', "its question is not text: 7"),
        ('{"question": "Who?", "filters": [1]}', "its filters are not a list of texts"),
        ('{"question": "Who?", "options": [1]}', "its options are not an object"),
        ('{"question": "Who?", "options": {"on_token": "x"}}', "'on_token' is not an option"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_a_line_that_cannot_be_read_is_a_question_with_a_problem(tmp_path: Path, line: str, problem: str) -> None:
    good, bad = read(tmp_path, "q.jsonl", f'"Who?"\n{line}\n')
    assert good.problem == "" and problem in bad.problem


def test_a_row_of_csv_that_does_not_fit_is_a_question_with_a_problem(tmp_path: Path) -> None:
    rows = read(tmp_path, "q.csv", "question,options\nWho,is,he?\nWho?,{bad\n")
    assert [row.problem.partition(": ")[2][:28] for row in rows] == [
        "has more cells than the head",
        "its options are not JSON: '{",
    ]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("q.txt", "\n \n", "has no questions"),
        ("q.txt", b"\xff\xfe\x00", "is not UTF-8"),
        ("q.csv", "text,method\nWho?,local\n", "no column `question`: 'text, method'"),
        ("q.csv", "", "no column `question`"),
    ],
)
def test_a_file_without_questions_is_refused(tmp_path: Path, name: str, content: str | bytes, words: str) -> None:
    with pytest.raises(PipelineError, match=words) as refused:
        read(tmp_path, name, content)
    assert str(tmp_path / name) in str(refused.value)


def test_a_missing_file_is_an_error_with_its_path(tmp_path: Path) -> None:
    for path in (tmp_path / "no.txt", tmp_path):
        with pytest.raises(PipelineError, match="cannot be read"):
            read_question_file(path, DEFAULT)
