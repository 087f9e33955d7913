"""A file of a newer release is refused with its release; names and types in a file are checked."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.errors import NewerFormatError, PipelineError
from graphrag_pipeline.storage.formats import ANY_KEY, check_names, check_shape, read_values


@given(st.dictionaries(st.text(max_size=9), st.integers() | st.none()), st.integers(2, 99))
def test_a_newer_file_is_refused_whatever_else_it_holds(others: dict[str, object], number: int) -> None:
    data = json.dumps({**others, "format": number, "needs_release": "1.4"}).encode()
    with pytest.raises(NewerFormatError, match=rf"`a/b\.json` has format {number}, which needs release 1\.4 or later"):
        read_values(data, "a/b.json")


@pytest.mark.parametrize("release", [None, 3, "", "x\x1b[31m", "1.0; rm"])
def test_a_newer_file_without_a_release_names_the_installed_one(release: object) -> None:
    data = json.dumps({"format": 9, "needs_release": release}).encode()
    with pytest.raises(NewerFormatError, match=r"needs a later release than \d+\.\d+"):
        read_values(data, "here")


@pytest.mark.parametrize("data", [b"", b"[]", b"3", b'{"format": "1"}', b'{"format": 0}', b'{"format": null}', b"\xff"])
def test_a_damaged_file_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        read_values(data, "here")


@pytest.mark.parametrize("name", ["entities", "000", "0a" * 16 + ".parquet", "default-entity-description", "_x"])
def test_names_of_files_are_allowed(name: str) -> None:
    check_names([name], "here")


@pytest.mark.parametrize(
    "name", ["..", ".", "", "../x", "a/b", "/etc", "a\\b", "-x", ".hidden", "a\n", "é", "a" * 300, None, 3, ["x"]]
)
def test_names_that_could_lead_elsewhere_are_refused(name: object) -> None:
    with pytest.raises(PipelineError, match="s3://b/state` names the file or folder"):
        check_names(["fine", name], "s3://b/state")


SHAPE = {"name": str, "size?": (int, type(None)), "files": [{"n": int}], "more": {ANY_KEY: bool}}


@pytest.mark.parametrize(
    "values",
    [
        {"name": "a", "files": [], "more": {}},
        {"name": "a", "size": None, "files": [{"n": 0}, {"n": 2**63 - 1}], "more": {"x": True}, "other": 1},
    ],
)
def test_values_of_the_stated_types_pass(values: dict[str, object]) -> None:
    check_shape(values, SHAPE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": 5}, "'name' is 5"),
        ({"name": None}, "'name' is None"),
        ({"size": True}, "'size' is True"),
        ({"size": 1.5}, "'size' is 1.5"),
        ({"files": {}}, "'files' is {}"),
        ({"files": [{}]}, "an item of 'files' has no 'n'"),
        ({"files": [{"n": -1}]}, "'n' is -1"),
        ({"files": [{"n": 2**63}]}, "'n' is 9223372036854775808"),
        ({"files": "x" * 500}, r"'files' is 'x{59}\.\.\.$"),
        ({"more": {"x": 1}}, "'x' is 1"),
        ({"more": {"x?": 1}}, r"'x\?' is 1"),
        ({"more": []}, r"'more' is \[\]"),
    ],
)
def test_a_value_of_another_type_is_named(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_shape({"name": "a", "files": [], "more": {}} | changes, SHAPE)
    with pytest.raises(ValueError, match="it has no 'name'"):
        check_shape({"files": [], "more": {}}, SHAPE)
