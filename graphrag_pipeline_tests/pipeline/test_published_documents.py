"""The documents of a snapshot as an input: those of their root, as if those that do not pass were not there."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import bucket_keys
from graphrag_pipeline.inputs.source_records import SourceRecord
from graphrag_pipeline.pipeline.published_documents import PublishedDocuments
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.storage.manifests import Manifest
from graphrag_pipeline_tests.support.roots import build_tables, make_root, put
from graphrag_pipeline_tests.support.thoroughness import repetitions

STAGES = ("corpus_manifest", "documents")
OPEN = ("level=open",)
BUCKETS = "storage: {n_buckets: 2}\n"


def _publish(root: Root) -> Manifest:
    """Return the manifest of a snapshot of the root's documents."""
    build_tables(root, STAGES)
    heads = [root.tables.need(table, key) for table in STAGES for key in bucket_keys(2)]
    return Manifest("pipeline", {f"{one.table}/{one.partition}": asdict(one) for one in heads}, {}, {}, "", "")


def _read(root: Root, filters=OPEN, buckets=None) -> list[SourceRecord]:
    found = PublishedDocuments(root.tables, _publish(root), filters).records(2, buckets)
    return sorted(found, key=lambda record: (record.path, record.record))


def _write(folder: Path, suffix: str, rows: list[dict]) -> None:
    names = dict.fromkeys(name for row in rows for name in row)
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    path = folder / "input" / f"rows.{suffix}"
    if suffix == "parquet":
        pq.write_table(table, path)
    elif suffix == "csv":
        csv.write_csv(table, path)
    else:
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def test_documents_are_those_of_the_root_and_not_of_its_folder(tmp_path):
    chunks = [{"document_id": "d", "type": "text", "page": 1, "text": text, "level": "open"} for text in ("A.", "B.")]
    root = make_root(tmp_path, {"a.txt": "The harbour.", "b.md": "# Mill\n\nA mill."}, BUCKETS)
    table = [{"id": "1", "text": "A tram.", "level": "open"}, {"id": "2", "text": " ", "level": "open"}]
    _write(tmp_path, "csv", table)
    put(tmp_path, "c.jsonl", "".join(f"{json.dumps(row)}\n" for row in chunks))
    manifest, expected = _publish(root), sorted(root.read_input(), key=lambda record: record.document_id)
    put(tmp_path, "a.txt", "The secret harbour.")
    put(tmp_path, "new.txt", "Not published.")
    documents = PublishedDocuments(root.tables, manifest, ())
    found = sorted(documents.records(2), key=lambda record: record.document_id)
    assert found == [record for record in expected if not record.problem]
    parts = [list(documents.records(2, {key})) for key in bucket_keys(2)]
    assert sorted((one for part in parts for one in part), key=lambda record: record.document_id) == found
    assert next(record for record in found if record.path == "c.jsonl").chunks


_LEVELS = st.lists(st.sampled_from(["open", "secret"]), min_size=1, max_size=7).filter(lambda found: "open" in found)


@settings(max_examples=repetitions(4, thorough=30), deadline=None)
@given(
    levels=_LEVELS, suffix=st.sampled_from(["jsonl", "csv", "parquet"]), has_id=st.booleans(), has_title=st.booleans()
)
def test_a_mixed_file_reads_as_if_it_had_the_open_rows_only(tmp_path_factory, levels, suffix, has_id, has_title):
    rows = [
        {"level": level, "text": f"Text {number}.", "note": f"n{number}"}
        | ({f"code_{number}": "x", "more": {"deep": 1}} if level == "secret" else {})
        | ({"id": f"r{number}"} if has_id else {})
        | ({"title": f"Row {number}"} if has_title else {})
        for number, level in enumerate(levels)
    ]
    if suffix == "csv":
        rows = [{name: value for name, value in row.items() if name != "more"} for row in rows]
    found = {}
    for name, kept in (("all", rows), ("open", [row for row in rows if row["level"] == "open"])):
        root = make_root(tmp_path_factory.mktemp(name), {}, BUCKETS)
        _write(root.path, suffix, kept)
        found[name] = _read(root)
    assert found["all"] == found["open"]
    assert "code" not in str(found) and "deep" not in str(found)


def test_a_row_that_is_hidden_by_one_that_does_not_pass_stops_the_reading(tmp_path):
    root = make_root(tmp_path, {"a.txt": "The harbour."}, BUCKETS)
    rows = [{"id": "1", "text": "A vault.", "level": "secret"}, {"id": "1", "text": "A tram.", "level": "open"}]
    _write(tmp_path, "jsonl", rows)
    with pytest.raises(PipelineError, match="has several rows with the id '1'"):
        _read(root)
    assert [record.path for record in _read(root, ("path=a.txt",))] == ["a.txt"]
    _write(tmp_path, "jsonl", rows[::-1])
    assert [record.text for record in _read(root)] == ["A tram."]


def test_a_lost_file_of_the_snapshot_is_an_error_that_names_it(tmp_path):
    root = make_root(tmp_path, {"a.txt": "The harbour."}, BUCKETS)
    manifest = _publish(root)
    for path in (tmp_path / "tables" / "documents").rglob("*.parquet"):
        path.unlink()
    with pytest.raises(PipelineError, match=r"tables/documents/.* is damaged"):
        list(PublishedDocuments(root.tables, manifest, ()).records(2))
