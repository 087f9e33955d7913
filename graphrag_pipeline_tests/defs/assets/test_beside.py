"""Stages that a thread runs beside another stage: which ones, and that nothing else changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_pipeline.defs.assets import beside, definitions
from graphrag_pipeline.defs.assets.beside import choose_stages, running_beside, take_made_beside
from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.defs.runs.session import IndexSession
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline_tests.support.roots import build_tables, built_root, make_root, put, table_bytes

AFTER_GRAPH = {name for name, stage in STAGES.items() if not stage.is_partitioned} - {"graph"}


@pytest.fixture
def root(tmp_path: Path) -> Root:
    root = built_root(tmp_path / "root", settings="storage: {n_buckets: 1}\n")
    return root


def run_of(root: Root, stage: str, waiting: set[str]) -> StageRun:
    return StageRun(root, STAGES[stage], WHOLE, session=IndexSession(waiting=waiting))


def names(run: StageRun) -> list[str]:
    return [stage.name for stage in choose_stages(run)]


def test_a_stage_runs_beside_another_once_all_that_it_reads_is_made(root: Root) -> None:
    assert names(run_of(root, "graph", AFTER_GRAPH | {"graph"})) == []
    assert names(run_of(root, "communities", AFTER_GRAPH)) == ["summarized_descriptions"]
    left = AFTER_GRAPH - {"communities", "summarized_descriptions"}
    assert names(run_of(root, "community_reports", left)) == ["entity_embeddings", "relationship_embeddings"]
    assert names(run_of(root, "community_reports", {"community_reports"})) == [], "nothing else is stale"
    assert names(run_of(root, "community_reports", set())) == [], "runs that Dagster starts know of no other stage"


def test_large_graphs_and_stages_that_ask_a_model_run_in_turn(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "MAX_ROWS", 3)
    assert names(run_of(root, "communities", AFTER_GRAPH)) == []
    monkeypatch.undo()
    model = "chat_model: {base_url: 'http://127.0.0.1:9/v1', model: m}\ndescriptions: {engine: model}\n"
    (root.path / "settings.yaml").write_text(f"storage: {{n_buckets: 1}}\n{model}")
    assert names(run_of(Root(root.path), "communities", AFTER_GRAPH)) == []


def test_only_a_run_from_the_same_inputs_is_taken_over(root: Root) -> None:
    put(root.path, "more.txt", "Bob Cratchit met Ebenezer Scrooge in London.")
    build_tables(root, ["corpus_manifest", "documents", "text_units", "extracted_graph", "graph"])
    run = run_of(root, "communities", AFTER_GRAPH)
    with running_beside(run, root, lambda one: definitions.BODIES[one.stage.name](one)):
        pass
    later = StageRun(root, STAGES["summarized_descriptions"], WHOLE, session=run.session)
    made = take_made_beside(later)
    assert made is not None and made.seconds_beside > 0
    assert take_made_beside(later) is None, "it is taken once"
    put(root.path, "most.txt", "Fezziwig danced with Dick Wilkins.")
    build_tables(root, ["corpus_manifest", "documents", "text_units", "extracted_graph", "graph"])
    run.session.made_beside["summarized_descriptions"] = made, []
    assert take_made_beside(later) is None, "the graph changed"


def _record_threads(monkeypatch: pytest.MonkeyPatch, fails: str = "") -> list[tuple[str, bool]]:
    """Note each body that runs as (stage, whether beside another one); let the first of a stage fail."""
    ran: list[tuple[str, bool]] = []

    def recorded(name: str, body: Callable[[StageRun], None]) -> Callable[[StageRun], None]:
        def work(run: StageRun) -> None:
            is_beside = threading.current_thread().name.startswith("stages-beside")
            ran.append((name, is_beside))
            if is_beside and name == fails:
                raise ValueError("failed beside")
            body(run)

        return work

    monkeypatch.setattr(definitions, "BODIES", {n: recorded(n, body) for n, body in definitions.BODIES.items()})
    return ran


def test_an_index_with_stages_side_by_side_has_the_tables_of_one_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    tables, snapshots = [], []
    expected = {"summarized_descriptions", "entity_embeddings", "relationship_embeddings"}
    for name, fails, is_serial in (("a", "", False), ("b", "entity_embeddings", False), ("c", "", True)):
        with monkeypatch.context() as patch:
            ran = _record_threads(patch, fails)
            if is_serial:
                patch.setattr(beside, "MAX_ROWS", -1)
            root = make_root(tmp_path / name, settings="storage: {n_buckets: 1}\n")
            report = run_index(root)
        found = {stage for stage, is_beside in ran if is_beside}
        assert not found if is_serial else found >= expected
        assert [stage for stage, is_beside in ran if stage == "entity_embeddings"] == ["entity_embeddings"] * (
            2 if fails else 1
        ), "a stage that failed beside another one runs again in its own step"
        assert {stage for stage, _ in report.ran} >= AFTER_GRAPH
        tables.append(table_bytes(root))
        snapshots.append(report.snapshot)
    assert tables[0] == tables[1] == tables[2] and len(set(snapshots)) == 1
