"""A chunk file through the real stages: one document per document id, and the saving of combined chunks."""

from __future__ import annotations

import json
from pathlib import Path

from graphrag_pipeline.defs.assets.definitions import BODIES
from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline_tests.support.corpora.paged_document import make_rows
from graphrag_pipeline_tests.support.roots import CAROL, build_tables, make_root, put, table_bytes

STAGES = ("corpus_manifest", "documents", "text_units")
ONE_BUCKET = "storage:\n  n_buckets: 1\n"


def lines(rows: list[dict]) -> str:
    return "\n".join(map(json.dumps, rows))


def test_text_units_show_the_saving_of_aggregation(tmp_path: Path) -> None:
    root = make_root(tmp_path, {**CAROL, "chunks.jsonl": lines(make_rows())}, ONE_BUCKET)
    build_tables(root, STAGES)
    run = StageRun(root, ALL_STAGES["text_units"], "000")
    run.pin_inputs()
    BODIES["text_units"](run)
    assert run.details["documents in chunks"] == 1
    assert run.details["text units before aggregation"] == len(make_rows())
    assert run.details["text units saved, %"] > 70


def test_a_chunk_file_leaves_the_text_units_of_other_documents_as_they_are(tmp_path: Path) -> None:
    alone = make_root(tmp_path / "alone", CAROL, ONE_BUCKET)
    mixed = make_root(tmp_path / "mixed", {**CAROL, "chunks.jsonl": lines(make_rows())}, ONE_BUCKET)
    for root in (alone, mixed):
        build_tables(root, STAGES)
    units = [root.tables.read_head(root.tables.need("text_units", "000")).to_pylist() for root in (alone, mixed)]
    assert all(unit in units[1] for unit in units[0])


def test_edited_chunks_end_in_the_same_bytes_as_a_rebuild(tmp_path: Path) -> None:
    rows = make_rows()
    edited = [{**rows[0], "text": "0. The preface"}, *rows[2:]]
    root = make_root(tmp_path / "edited", {"chunks.jsonl": lines(rows)}, ONE_BUCKET)
    build_tables(root, STAGES)
    put(root.path, "chunks.jsonl", lines(edited))
    rebuilt = make_root(tmp_path / "rebuilt", {"chunks.jsonl": lines(edited)}, ONE_BUCKET)
    for one in (root, rebuilt):
        build_tables(one, STAGES)
    assert table_bytes(root, STAGES) == table_bytes(rebuilt, STAGES)
