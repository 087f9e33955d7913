"""A chunk file through the real stages: one document per document id, and the saving of combined chunks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from graphrag_pipeline.defs.assets.definitions import BODIES
from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.records import read_text_units
from graphrag_pipeline_tests.support.corpora.paged_document import make_rows
from graphrag_pipeline_tests.support.roots import (
    CAROL,
    build_tables,
    built_root,
    indexed_root,
    make_root,
    put,
    table_bytes,
)

STAGES = ("corpus_manifest", "documents", "text_units")
NAMES = (
    "Fezziwig", "Marley", "Cratchit", "Topper", "Belle", "Dilber", "Wilkins", "Jorkins", "Peggotty", "Micawber",
    "Barkis", "Heep", "Trotwood", "Steerforth", "Traddles", "Murdstone", "Creakle", "Mell", "Dartle", "Gummidge",
)  # fmt: skip
ONE_BUCKET = "storage:\n  n_buckets: 1\n"


def lines(rows: list[dict]) -> str:
    return "\n".join(map(json.dumps, rows))


def test_text_units_show_the_saving_of_aggregation(tmp_path: Path) -> None:
    root = built_root(tmp_path, {**CAROL, "chunks.jsonl": lines(make_rows())}, ONE_BUCKET, stages=STAGES)
    run = StageRun(root, ALL_STAGES["text_units"], "000")
    run.pin_inputs()
    BODIES["text_units"](run)
    assert run.details["documents in chunks"] == 1
    assert run.details["text units before aggregation"] == len(make_rows())
    assert run.details["text units saved, %"] > 70


def test_a_citation_of_a_cut_table_points_to_the_row_in_the_document(tmp_path: Path) -> None:
    rows = "".join(f"| Lot {n} | {name} of Brantwick | {n * 7} |\n" for n, name in enumerate(NAMES))
    table = {"document_id": "d", "type": "table", "page": 1, "text": "| Lot | Buyer | Price |\n|---|---|---|\n" + rows}
    small = "text_units:\n  aggregation_target: 120\n  aggregation_max: 150\n"
    indexed_root(tmp_path, {"chunks.jsonl": lines([table])}, ONE_BUCKET + small)
    with GraphIndex.open(tmp_path) as index:
        (document,) = index.snapshot.table("documents").to_pylist()
        units = index.snapshot.table("text_units").to_pylist()
        result = index.search(f"Which lot did {NAMES[-1]} of Brantwick buy?", "basic")
        spans = read_text_units(index, np.arange(len(units)), np.zeros(len(units)))
    assert len(units) > 3 and all(unit["text"].startswith("| Lot | Buyer |") for unit in units)
    assert any(NAMES[-1] in citation.quote for citation in result.citations)
    assert "[1] d, page 1, characters " in result.sources_to_markdown()
    for citation in result.citations:
        assert document["text"][citation.start : citation.end] == citation.quote
    for unit in spans:
        for start, end in ((0, 5), (unit.n_header, unit.n_header + 9), (len(unit.text) - 4, len(unit.text))):
            first, last = unit.place_of(start, end)
            assert document["text"][first:last] == unit.text[start:end]
        excerpt = unit.cut(unit.n_header, unit.n_header + 9, 3)
        assert document["text"][excerpt.start : excerpt.end] == excerpt.text and excerpt.n_header == 0
        both = unit.cut(4, unit.n_header + 9, 3)
        assert both.text[both.n_header :] == document["text"][both.start : both.end]


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
