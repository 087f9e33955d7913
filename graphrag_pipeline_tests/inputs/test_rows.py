"""Chunk files: one document per document id, a note on each defect, and no lost row."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphrag_pipeline.inputs.documents import build_documents, read_records
from graphrag_pipeline.inputs.source_records import document_id_of
from graphrag_pipeline.settings.input import InputSettings
from graphrag_pipeline.tables import DOCUMENTS

PLAIN = InputSettings()
ROWS: list[dict[str, Any]] = [
    {"document_id": "a", "type": "title", "page": 1, "text": "The Harbour", "id": "a1", "lang": "en"},
    {"document_id": "b", "type": "paragraph", "page": 1, "text": "Other.", "id": "b1", "lang": "en"},
    {"document_id": "a", "type": "Paragraph", "page": 2, "text": " It was built.\n", "id": "a2", "lang": "en"},
]


def as_jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def as_parquet(rows: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def read(rows: list[dict[str, Any]], settings: InputSettings = PLAIN, path: str = "c.jsonl", write=as_jsonl):
    records = read_records(path, write(rows), settings)
    assert len({record.document_id for record in records}) == len(records)
    documents = build_documents(records)
    assert documents.schema == DOCUMENTS.schema
    by_record = {row["record"]: row for row in documents.to_pylist()}
    assert not [record.problem for record in records if record.problem]
    return by_record, [record.note for record in records if record.note]


@pytest.mark.parametrize(
    ("path", "write"),
    [("c.jsonl", as_jsonl), ("c.json", lambda rows: json.dumps(rows).encode()), ("c.csv", as_csv),
     ("c.parquet", as_parquet)],
)  # fmt: skip
def test_rows_of_one_document_id_become_one_document(path, write):
    documents, notes = read(ROWS, path=path, write=write)
    assert not notes and sorted(documents) == ["a", "b"]
    a = documents["a"]
    assert (a["id"], a["title"], a["text"]) == (
        document_id_of(path, "a"),
        "The Harbour",
        "The Harbour\n\nIt was built.",
    )
    assert a["chunks"] == [
        {"start": 0, "end": 11, "type": "title", "page": 1, "id": "a1"},
        {"start": 13, "end": 26, "type": "paragraph", "page": 2, "id": "a2"},
    ]
    assert json.loads(a["metadata"]) == {"lang": "en"}
    assert documents["b"]["title"] == "b"


@pytest.mark.parametrize("missing", ["document_id", "type", "page"])
def test_a_file_without_one_of_the_columns_is_read_as_records(missing):
    rows = [{key: value for key, value in row.items() if key != missing} for row in ROWS]
    documents, _ = read(rows)
    assert sorted(documents) == ["a1", "a2", "b1"]
    assert all(document["chunks"] is None for document in documents.values())


def test_columns_are_named_in_the_settings_and_an_empty_name_is_not_read():
    rows = [{"meta": {"doc": "x"}, "kind": "title", "text": "T"}, {"meta": {"doc": "x"}, "kind": "list", "text": "- l"}]
    named = InputSettings(document_id_column="meta.doc", type_column="kind", page_column="")
    documents, notes = read(rows, named)
    assert [chunk["type"] for chunk in documents["x"]["chunks"]] == ["title", "list"] and not notes
    assert sorted(read(ROWS, InputSettings(document_id_column=""))[0]) == ["a1", "a2", "b1"]


def row(text: str, page: Any = 1, kind: Any = "paragraph", document_id: Any = "a") -> dict[str, Any]:
    return {"document_id": document_id, "type": kind, "page": page, "text": text}


@pytest.mark.parametrize(
    ("odd", "note", "n_chunks"),
    [
        (row("x", kind="poem"), "line 2: type 'poem' is not known, read as a paragraph", 2),
        (row("x", kind=None), "line 2: type '' is not known", 2),
        (row("x", page="iv"), "line 2: page 'iv' is no whole number, read as unknown", 2),
        (row("x", page=2.5), "line 2: page '2.5' is no whole number", 2),
        (row("x", page=10**12), "is no whole number", 2),
        (row("x", page=True), "page 'true' is no whole number", 2),
        (row("x", page=-3), "line 2: page -3 comes after page 1, kept where it is", 2),
        (row(" "), "line 2: no text in 'text', left out", 1),
        (row("a\x00b"), "line 2: binary data", 1),
        ({**row(""), "text": {"a": 1}}, "line 2: 'text' holds no text but a dict, left out", 1),
    ],
)
def test_an_odd_row_is_noted_and_the_document_is_read(odd, note, n_chunks):
    documents, notes = read([row("first"), odd])
    assert len(documents["a"]["chunks"]) == n_chunks
    assert len(notes) == 1 and note in notes[0] and notes[0].startswith("document 'a': ")


@pytest.mark.parametrize(("page", "known"), [("7", 7), (" 7 ", 7), (7.0, 7), ("7.0", 7), (None, None), ("", None)])
def test_whole_numbers_are_pages_however_written(page, known):
    documents, notes = read([row("first", page=page)])
    assert documents["a"]["chunks"][0]["page"] == known and not notes


def test_rows_without_a_document_id_are_documents_of_their_own():
    documents, notes = read([row("first"), row("lost", document_id=None), row("too", document_id=" ")])
    assert {name: document["text"] for name, document in documents.items()} == {
        "a": "first", "#2": "lost", "#3": "too",
    }  # fmt: skip
    assert [note.partition(": ")[2] for note in notes] == [
        "line 2: no 'document_id', a document of its own",
        "line 3: no 'document_id', a document of its own",
    ]


def test_an_invalid_row_and_a_document_without_text_are_separate_problems():
    lines = as_jsonl([row("first"), row("", document_id="empty")]) + b'\n{"document_id": '
    records = read_records("c.jsonl", lines, PLAIN)
    problems = {record.record: record.problem for record in records if record.problem}
    assert build_documents(records).num_rows == 1
    assert problems["empty"] == "document 'empty' has no text: line 2: no text in 'text', left out"
    assert problems["#3"].startswith("line 3: not valid JSON")


def test_a_changed_page_or_type_is_a_changed_document():
    versions = [row("x"), row("x", page=2), row("x", kind="title")]
    hashes = {read_records("c.jsonl", as_jsonl([version]), PLAIN)[0].content_hash for version in versions}
    assert len(hashes) == 3
