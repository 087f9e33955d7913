"""Stages that worker processes compute: the same bytes as in one process, whatever happens to a worker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graphrag_pipeline.defs.assets import by_workers
from graphrag_pipeline.defs.assets.by_workers import compute_in_parts, start_buckets, take_bucket
from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.defs.runs.session import IndexSession
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, STAGES
from graphrag_pipeline.workers import WorkerPool
from graphrag_pipeline_tests.support.roots import build_tables, built_root, make_root, put, table_bytes

EXTRACTION = STAGES["extracted_graph"]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are worth while for the smallest root."""
    monkeypatch.setattr(by_workers, "WORTH_ROWS", 1)
    monkeypatch.setattr(by_workers, "WORTH_ROWS_OF_GRAPH", 1)


def _lose_tables(root: Root, stage: str) -> None:
    for table in STAGES[stage].tables:
        for head in (root.path / "heads" / table).glob("*.json"):
            head.unlink()


def test_two_workers_make_the_bytes_of_one(tmp_path: Path, always: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    alone = built_root(tmp_path / "alone", stages=ALL_STAGES)
    session, lost = IndexSession(workers=WorkerPool(1)), built_root(tmp_path / "lost", stages=ALL_STAGES)
    _lose_tables(lost, "extracted_graph")
    start_buckets(lost, EXTRACTION, ["000", "001"], session, is_stale_only=True)
    assert not session.started_buckets and not compute_in_parts(
        StageRun(lost, STAGES["community_reports"], WHOLE, session=session)
    )
    made: list[str] = []
    take = by_workers._take
    monkeypatch.setattr(by_workers, "_take", lambda run, parts: made.append(run.stage.name) or take(run, parts))
    together = make_root(tmp_path / "together")
    run_index(together, workers=WorkerPool(2))
    assert set(made) == {*by_workers.COMPUTED_BY, *by_workers.IN_PARTS}
    assert table_bytes(alone) == table_bytes(together) and alone.snapshots.current() == together.snapshots.current()


def test_a_worker_that_died_costs_only_time(tmp_path: Path, always: None) -> None:
    root = built_root(tmp_path / "root")
    before = table_bytes(root)
    _lose_tables(root, "extracted_graph")
    lines: list[str] = []
    with WorkerPool(2) as workers:
        workers.submit(os._exit, 1)
        session = IndexSession(workers=workers)
        start_buckets(root, EXTRACTION, ["000", "001"], session, is_stale_only=True)
        assert len(session.started_buckets) == 2
        for bucket in ("000", "001"):
            run = StageRun(root, EXTRACTION, bucket, lines.append, session)
            run.pin_inputs()
            assert not take_bucket(run)
        assert not workers.is_running, "the next stage starts others"
    assert any("a worker process did not finish" in line for line in lines)
    build_tables(root, ["extracted_graph"])
    assert table_bytes(root) == before


def test_what_a_worker_made_of_another_input_is_not_taken(tmp_path: Path, always: None) -> None:
    root = built_root(tmp_path / "root")
    _lose_tables(root, "extracted_graph")
    with WorkerPool(2) as workers:
        session = IndexSession(workers=workers)
        start_buckets(root, EXTRACTION, ["000", "001"], session, is_stale_only=True)
        put(root.path, "more.txt", "Bob Cratchit met Ebenezer Scrooge in London.")
        put(root.path, "most.txt", "Fezziwig danced with Dick Wilkins.")
        for future in session.started_buckets.values():
            future.result()
        changed = [key for stage, key in build_tables(root, ["corpus_manifest", "documents", "text_units"])]
        taken = []
        for bucket in ("000", "001"):
            run = StageRun(root, EXTRACTION, bucket, session=session)
            run.pin_inputs()
            taken.append(take_bucket(run))
        assert taken == [bucket not in changed for bucket in ("000", "001")] and False in taken


def test_workers_are_left_out_where_they_do_not_pay_and_where_a_model_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = built_root(tmp_path / "root")
    session = IndexSession(workers=WorkerPool(2))
    start_buckets(root, EXTRACTION, ["000", "001"], session, is_stale_only=False)
    run = StageRun(root, STAGES["community_reports"], WHOLE, session=session)
    run.pin_inputs()
    assert not compute_in_parts(run) and not session.started_buckets, "so small a root"
    monkeypatch.setattr(by_workers, "WORTH_ROWS", 1)
    model = "chat_model: {base_url: 'http://127.0.0.1:9/v1', model: m}\nextraction: {engine: model}\n"
    (root.path / "settings.yaml").write_text(f"storage: {{n_buckets: 2}}\n{model}")
    start_buckets(Root(root.path), EXTRACTION, ["000", "001"], session, is_stale_only=False)
    assert not session.started_buckets and not session.workers.is_running
