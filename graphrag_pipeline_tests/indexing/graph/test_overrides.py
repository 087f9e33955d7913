import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.indexing.graph.overrides import MAX_ERRORS_SHOWN, read_overrides


def read(text: str) -> list[tuple[str, str, str]]:
    return [tuple(row.values()) for row in read_overrides(text.encode()).to_pylist()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("action,a,b\n", []),
        ("\ufeffAction,A,B\n\n# why\nmerge,the  Boss,Scrooge\n", [("merge", "THE BOSS", "SCROOGE")]),
        ("action;a;b;note\nkeep apart;Zurich;Anna;two\n", [("keep_apart", "ANNA", "ZURICH")]),
        ('a,action,b\n"Washington, D.C.",merge,Washington\n', [("merge", "WASHINGTON, D.C.", "WASHINGTON")]),
        ("action,a,b\nmerge,x,y\nmerge,X,Y\n", [("merge", "X", "Y")]),
        ("action,a,b\nmerge,x,y\nmerge,y,z\n", [("merge", "X", "Y"), ("merge", "Y", "Z")]),
        ("action,a,b\nkeep_apart,b,a\nkeep_apart,a,b\n", [("keep_apart", "A", "B")]),
    ],
)
def test_rows_are_read_with_normal_titles(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("merge,a,b\n", "line 1: no column action; the first line must be action,a,b"),
        ("action,a,b\nmrege,x,y\n", "line 2: action 'mrege' is unknown; write merge or keep_apart"),
        ("action,a,b\nmerge,x\n", "line 2: 2 fields"),
        ("action,a,b\n\nmerge,x,\n", "line 3: a name is empty"),
        ("action,a,b\nmerge,x,X\n", "line 2: both names are 'X'"),
        ("action,a,b\nmerge,x,y\nmerge,x,z\n", "line 3: 'X' is merged into 'Y' by line 2 already"),
        ("action,a,b\nmerge,x,y\nmerge,y,x\n", "line 3: 'X' is merged into 'Y' already"),
        ("action,a,b\nmerge,x,y\nkeep_apart,y,x\n", "line 3: 'X' and 'Y' are kept apart here and merged by line 2"),
        ("action,a,b\nmerge,x,z\nmerge,y,z\nkeep_apart,y,x\n", "line 4.*merged by line 2, 3"),
    ],
)
def test_a_contradiction_names_the_line(text: str, message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        read_overrides(text.encode())


def test_all_contradicting_lines_are_named_at_once() -> None:
    text = "action,a,b\njoin,a,b\nmerge,x,y\nmerge,x\nmerge,y,x\n"
    with pytest.raises(PipelineError) as error:
        read_overrides(text.encode())
    assert [line.split(":")[0] for line in str(error.value).split("\n")] == [
        f"entity_overrides.csv line {number}" for number in (2, 4, 5)
    ]


def test_of_many_bad_lines_the_first_are_named_and_the_others_counted() -> None:
    with pytest.raises(PipelineError) as error:
        read_overrides(b"action,a,b\n" + b"join,a,b\n" * (MAX_ERRORS_SHOWN + 5))
    lines = str(error.value).split("\n")
    assert len(lines) == MAX_ERRORS_SHOWN + 1
    assert lines[-1] == "and 5 more lines"


def test_other_encodings_name_the_line() -> None:
    with pytest.raises(PipelineError, match="line 2: not UTF-8"):
        read_overrides("action,a,b\nmerge,Zürich,Zurich\n".encode("latin-1"))
