"""Documents that `input.filters` keep out leave nothing: no record, no number of a row, no note, no problem."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filters import flatten_metadata, parse_filter, passes
from graphrag_pipeline.inputs.files import read_input
from graphrag_pipeline.inputs.source_records import SourceRecord
from graphrag_pipeline.query.filtering.document_mask import DocumentFields
from graphrag_pipeline.settings.input import InputSettings
from graphrag_pipeline.tables import CONTRACT_TABLES

OPEN = {"level": "open", "text": "The harbour was deepened."}
HIDDEN = {"level": "secret", "text": "The vault is below the mill."}


def _read(folder: Path, *filters: str, **options) -> list[SourceRecord]:
    return list(read_input(folder, InputSettings(filters=filters, **options), 8))


def _write_rows(path: Path, rows: list[dict]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path.parent


@pytest.mark.parametrize("has_id", [True, False])
@pytest.mark.parametrize("has_title", [True, False])
def test_a_file_without_its_hidden_rows_reads_the_same(tmp_path, has_id, has_title):
    rows = [HIDDEN, OPEN, HIDDEN, OPEN | {"text": "A tram runs."}, HIDDEN]
    rows = [
        row | ({"id": f"r{n}"} if has_id else {}) | ({"title": f"Row of {row['text']}"} if has_title else {})
        for n, row in enumerate(rows)
    ]
    whole = _write_rows(tmp_path / "all" / "rows.jsonl", rows)
    alone = _write_rows(tmp_path / "open" / "rows.jsonl", [row for row in rows if row["level"] == "open"])
    found = _read(whole, "level=open")
    assert found == _read(alone)
    assert len(found) == 2
    assert found != _read(whole)


def test_notes_and_problems_of_a_file_go_with_its_hidden_rows(tmp_path):
    rows = [HIDDEN | {"id": "1"}, OPEN | {"id": "1"}, OPEN | {"id": "2"}, {"id": "3", "level": "open"}]
    folder = _write_rows(tmp_path / "in" / "rows.jsonl", rows)
    assert [(record.record, record.problem) for record in _read(folder, "level=open")] == [("1", None), ("2", None)]
    by_path = _read(folder, "path=rows.jsonl")
    assert by_path == _read(folder)
    assert [record.problem is None for record in by_path] == [True, False, True, False]


def test_a_row_with_an_empty_cell_passes_no_filter_on_its_column(tmp_path):
    (tmp_path / "rows.csv").write_text("text,level\nThe harbour was deepened.,open\nThe vault is below the mill.,\n")
    [found] = _read(tmp_path, "level!=secret")
    assert found.text == OPEN["text"]


@pytest.mark.parametrize("hidden_id", ["1", "2", "#1", "#2", ""])
@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "parquet"])
def test_a_hidden_row_hides_no_row_that_passes(tmp_path, suffix, hidden_id):
    rows = [
        HIDDEN | {"id": hidden_id},
        OPEN | {"id": "1"},
        HIDDEN | {"id": hidden_id},
        OPEN | {"id": "2", "text": "A tram runs."},
        OPEN | {"id": "", "text": "Snow fell."},
        HIDDEN | {"id": "1", "text": ""},
    ]
    found = _read(_write_table(tmp_path / "all", suffix, rows), "level=open")
    assert found == _read(_write_table(tmp_path / "open", suffix, [row for row in rows if row["level"] == "open"]))
    assert [record.record for record in found] == ["1", "2", "#3"]


def _write_table(folder: Path, suffix: str, rows: list[dict]) -> Path:
    folder.mkdir()
    table, path = pa.Table.from_pylist(rows), folder / f"rows.{suffix}"
    if suffix == "parquet":
        pq.write_table(table, path)
    elif suffix == "csv":
        pa_csv.write_csv(table, path)
    else:
        path.write_text(json.dumps(rows) if suffix == "json" else "".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


def test_two_rows_that_pass_and_have_one_id_are_a_problem_that_is_listed(tmp_path):
    rows = [HIDDEN | {"id": "1"}, OPEN | {"id": "1"}, OPEN | {"id": "1"}]
    folder = _write_rows(tmp_path / "in" / "rows.jsonl", rows)
    kept, refused = _read(folder, "level=open")
    assert (kept.record, kept.problem) == ("1", None)
    assert "row 2 of those that pass input.filters: id '1' is already that of row 1" in refused.problem


def test_records_in_the_cache_are_those_of_the_filters(tmp_path):
    folder = _write_rows(tmp_path / "in" / "rows.jsonl", [HIDDEN | {"id": "1"}, OPEN | {"id": "2"}])
    for filters, names in (((), ["1", "2"]), (("level=open",), ["2"]), (("level=secret",), ["1"])):
        for _ in range(2):
            found = read_input(folder, InputSettings(filters=filters), 8, cache_folder=tmp_path / "cache")
            assert [record.record for record in found] == names


def test_a_file_without_a_known_content_passes_only_by_its_path(tmp_path):
    (tmp_path / "in" / "open").mkdir(parents=True)
    (tmp_path / "in" / "open" / "a.docx").write_bytes(b"not a docx")
    (tmp_path / "in" / "secret.docx").write_bytes(b"not a docx")
    assert [record.path for record in _read(tmp_path / "in", "path~open/")] == ["open/a.docx"]
    assert _read(tmp_path / "in", "title!=Vault") == []


def test_a_document_that_cannot_be_read_now_stays_only_if_it_passed(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.docx").write_bytes(b"not a docx")
    known = SourceRecord("1", "a.docx", "", "docx", 1, "h", "A", "Text.", None, '{"level": "open"}', None)
    for level, n_kept in (("open", 1), ("secret", 0)):
        settings, last = (
            InputSettings(filters=("level=open",)),
            dataclasses.replace(known, metadata=f'{{"level": "{level}"}}'),
        )
        found = list(read_input(tmp_path / "in", settings, 8, last_known=lambda path, last=last: [last]))
        assert [record.path for record in found] == ["a.docx"] * n_kept


def test_a_filter_that_cannot_be_parsed_is_refused():
    with pytest.raises(ValidationError, match="write FIELD OPERATOR VALUE"):
        InputSettings(filters=("level",))


def test_filters_change_the_version_of_a_root_only_if_there_are_some():
    assert "filters" not in InputSettings().result_options()
    assert InputSettings(filters=("level=open",)).result_options()["filters"] == ["level=open"]


@pytest.mark.parametrize(
    ("text", "is_passing"),
    [
        ("level=open", True), ("LEVEL=Open", True), ("level!=open", False), ("level!=secret", True),
        ("nothing!=secret", False), ("nothing=open", False), ("year>=2024", True), ("date<2024", False),
        ("tags=coal", True), ("tags!=coal", False), ("author.name~dick", True), ("metadata.title=inner", True),
        ("title=outer", True), ("stars>3", True), ("stars>many", False), ("record!=7", False), ("empty!=x", False),
        ("blank!=x", False), ("blank=x,", False), ("cells!=x", False), ("partly!=x", True), ("partly!=y", False),
    ],
)  # fmt: skip
def test_a_missing_value_passes_nothing(text, is_passing):
    columns = {"id": "1", "title": "Outer", "path": "in/a", "record": "", "creation_date": "2024-05"}
    values = {
        "level": "open",
        "tags": ["oil", "coal"],
        "author": {"name": "Dickens"},
        "title": "inner",
        "stars": 4,
        "empty": [],
        "blank": " ",
        "cells": ["", None],
        "partly": ["", "y"],
    }
    assert passes(parse_filter(text), columns, dict(flatten_metadata(values))) is is_passing


_VALUES = st.one_of(st.integers(0, 3), st.sampled_from(["a", "B", "2024", "2024-05", "1"]), st.booleans())


@given(
    metadata=st.dictionaries(st.sampled_from(["x", "y", "date", "year"]), _VALUES | st.lists(_VALUES, max_size=2)),
    date=st.none() | st.sampled_from(["2023", "2024-05-01"]),
    field=st.sampled_from(["x", "y", "date", "year", "title", "path"]),
    operator=st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "~"]),
    value=st.sampled_from(["a", "b", "1", "2", "2024", "2024-05", "a,1"]),
)
def test_one_document_alone_passes_what_it_passes_in_an_index(metadata, date, field, operator, value):
    condition = parse_filter(f"{field}{operator}{value}")
    row = {"id": "1", "human_readable_id": 0, "title": "B", "text": "", "text_unit_ids": [], "path": "a", "record": ""}
    table = CONTRACT_TABLES["documents"].from_rows([row | {"metadata": json.dumps(metadata), "creation_date": date}])
    columns = {"id": "1", "title": "B", "path": "a", "record": "", "creation_date": date}
    alone = passes(condition, columns, dict(flatten_metadata(metadata)))
    try:
        expected = bool(DocumentFields(table).mask_of(condition)[0])
    except PipelineError:  # no such field, or values of another type
        expected = operator == "!=" and alone
    if expected != alone:  # only a missing value may differ
        assert operator == "!="
        assert not metadata.get(field)
