"""Blocking checks: a whole index passes, and each kind of damage fails its check."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.defs.runs.naming import ALLOW_REMOVAL_TAG
from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.publishing.candidates import publish
from graphrag_pipeline.publishing.checks import (
    check_failures,
    check_mixed_prompts,
    check_schemas,
    check_snapshot,
    find_removal_problem,
)
from graphrag_pipeline.settings.settings import PublishingSettings
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.tables.contract import CONTRACT_FAILURES
from graphrag_pipeline_tests.support.corpora import small_index
from graphrag_pipeline_tests.support.roots import indexed_root, put


def failed(snapshot: Snapshot) -> set[str]:
    return {result.name for result in check_snapshot(snapshot) if not result.passed}


def changed(snapshot: Snapshot, table: str, change: Callable[[pa.Table], pa.Table]) -> Snapshot:
    """Return the snapshot with one table replaced, like damage."""
    store = SnapshotStore(snapshot.folder.parent)
    entry = store.write_table(table, change(snapshot.table(table)))
    manifest = replace(snapshot.manifest, tables={**snapshot.manifest.tables, table: entry})
    return store.open(store.write_manifest(manifest))


def set_column(name: str, change: Callable[[list], list]) -> Callable[[pa.Table], pa.Table]:
    def apply(rows: pa.Table) -> pa.Table:
        position = rows.schema.get_field_index(name)
        values = pa.array(change(rows[name].to_pylist()), rows.schema.field(name).type)
        return rows.set_column(position, rows.schema.field(name), values)

    return apply


def test_a_whole_index_passes_and_is_published(tmp_path: Path) -> None:
    snapshot = small_index.freeze(tmp_path)
    assert failed(snapshot) == set()
    store = SnapshotStore(tmp_path)
    publish(store, snapshot.id)
    assert store.current() == snapshot.id
    assert store.open().table("entities").num_rows == 5


@pytest.mark.parametrize(
    ("check", "table", "change"),
    [
        ("unique_keys", "entities", set_column("human_readable_id", lambda v: [0] * len(v))),
        ("unique_keys", "entities", set_column("title", lambda v: [v[0]] * len(v))),
        ("numbers", "relationships", set_column("weight", lambda v: [math.nan, *v[1:]])),
        ("references", "text_units", set_column("document_id", lambda v: ["nowhere"] * len(v))),
        ("references", "entities", set_column("text_unit_ids", lambda v: [["x') OR ('1'='1"]] * len(v))),
        ("communities", "communities", set_column("entity_ids", lambda v: [v[0][:-1], *v[1:]])),
        ("communities", "communities", set_column("entity_ids", lambda v: [*v[:3], v[3] + v[2][:1]])),
        ("communities", "communities", set_column("children", lambda v: [[], *v[1:]])),
        ("communities", "communities", set_column("level", lambda v: [0, 0, 2, 2])),
        ("reports", "community_reports", lambda rows: rows.slice(1)),
        ("reports", "community_reports", set_column("full_content", lambda v: ["", *v[1:]])),
        ("vectors", "text_units", lambda rows: rows.slice(1)),
        ("sentences", "text_units", lambda rows: rows.slice(1)),
        ("sentences", "text_units", set_column("text", lambda v: [v[0] + " More.", *v[1:]])),
        ("vectors", "entities", set_column("id", lambda v: ["other", *v[1:]])),
    ],
)
def test_damage_is_found(tmp_path: Path, check: str, table: str, change: Callable[[pa.Table], pa.Table]) -> None:
    snapshot = changed(small_index.freeze(tmp_path), table, change)
    assert check in failed(snapshot)
    store = SnapshotStore(tmp_path)
    with pytest.raises(PipelineError, match=check):
        publish(store, snapshot.id)
    assert store.current() is None


@pytest.mark.parametrize("array", ["sentence_starts", "sentence_ends", "sentence_scales", "text_unit_sentences_indptr"])
def test_damaged_sentences_are_found(tmp_path: Path, array: str) -> None:
    snapshot = small_index.freeze(tmp_path)
    folder = snapshot.folder / "sentences" / snapshot.manifest.sentences
    arrays = {path.stem: np.load(path) for path in folder.glob("*.npy")}
    store = SnapshotStore(tmp_path)
    for damaged in (arrays[array][1:], arrays[array][::-1]):
        name = store.write_sentences({**arrays, array: damaged})
        broken = store.open(store.write_manifest(replace(snapshot.manifest, sentences=name)))
        # The value of a scale cannot be checked against the other arrays; its presence for each sentence can.
        assert failed(broken) == {"sentences"} or (array == "sentence_scales" and len(damaged) == len(arrays[array]))


def test_an_index_without_sentences_is_found(tmp_path: Path) -> None:
    snapshot = small_index.freeze(tmp_path)
    store = SnapshotStore(tmp_path)
    assert failed(store.open(store.write_manifest(replace(snapshot.manifest, sentences="")))) == {"sentences"}


def test_a_table_of_another_schema_is_found(tmp_path: Path) -> None:
    snapshot = small_index.freeze(tmp_path)
    path = snapshot.table_path("entities")
    pq.write_table(pq.read_table(path).drop_columns(["n_tokens"]), path)
    changed = SnapshotStore(tmp_path).open(snapshot.id)
    assert failed(changed) == {"files"}, "nothing else is looked at in a damaged snapshot"
    assert check_schemas(changed) == ["entities: not as in the contract: n_tokens"]


def test_a_head_built_from_older_inputs_is_found(tmp_path: Path) -> None:
    snapshot = small_index.freeze(tmp_path)
    store = SnapshotStore(tmp_path)
    heads = {
        "documents/000": {"data_version": "new", "code_version": "c", "inputs": {}, "files": []},
        "text_units/000": {"data_version": "t", "code_version": "c", "inputs": {"documents/000": "old"}, "files": []},
    }
    stale = store.open(store.write_manifest(replace(snapshot.manifest, heads=heads)))
    assert failed(stale) == {"heads"}


def test_a_snapshot_with_a_missing_file_does_not_open(tmp_path: Path) -> None:
    snapshot = small_index.freeze(tmp_path)
    snapshot.table_path("entities").unlink()
    with pytest.raises(NoSnapshotError, match="is missing"):
        SnapshotStore(tmp_path).open(snapshot.id)


def test_adjacency_equals_the_tables(tmp_path: Path) -> None:
    snapshot = small_index.freeze(tmp_path)
    entities, units = snapshot.table("entities"), snapshot.table("text_units")
    for row, entity in enumerate(entities.to_pylist()):
        rows = snapshot.adjacency.of("entity_text_units", row)
        assert units["id"].take(pa.array(rows)).to_pylist() == entity["text_unit_ids"]
        relationships = snapshot.take("relationships", snapshot.adjacency.of("entity_relationships", row))
        assert all(entity["title"] in (r["source"], r["target"]) for r in relationships)
        assert len(relationships) == entity["degree"]
        communities = snapshot.take("communities", snapshot.adjacency.of("entity_communities", row))
        assert sorted(c["level"] for c in communities) == list(range(len(communities)))
    assert np.array_equal(
        snapshot.adjacency.array("relationship_source"),
        snapshot.rows_of("entities", snapshot.table("relationships")["source_id"].to_pylist()),
    )
    assert pc.sum(pa.array(snapshot.adjacency.counts("entity_relationships"))).as_py() == 6


def with_code_versions(snapshot: Snapshot, versions: dict[str, str]) -> Snapshot:
    """Return the snapshot with these heads of partitions."""
    heads = {name: {"data_version": name, "code_version": code, "inputs": {}} for name, code in versions.items()}
    code = {version: {"algorithm": 1, "prompt extract_graph": f"hash {version}"} for version in versions.values()}
    store = SnapshotStore(snapshot.folder.parent)
    return store.open(store.write_manifest(replace(snapshot.manifest, heads=heads, code=code)))


def test_buckets_of_one_stage_by_several_versions_are_published_only_if_a_setting_allows_it(tmp_path: Path) -> None:
    versions = {
        "entity_mentions/000": "a",
        "entity_mentions/001": "b",
        "claim_mentions/000": "a",
        "text_units/000": "c",
    }
    mixed = with_code_versions(small_index.freeze(tmp_path), versions)
    store = SnapshotStore(tmp_path)
    message = (
        "mixed_prompts: extracted_graph: its buckets come from 2 versions of prompt extract_graph "
        r"\(buckets 000; others: 001\)"
    )
    with pytest.raises(PipelineError, match=message):
        publish(store, mixed.id)
    assert store.current() is None
    publish(store, mixed.id, PublishingSettings(allow_mixed_prompts=True))
    assert store.current() == mixed.id


@pytest.mark.parametrize(
    ("n_failed", "n_asked", "is_blocked"),
    [(1, 3, False), (2, 99, False), (3, 99, True), (2, 2, True), (1, 1, True), (20, 1000, False), (21, 1000, True)],
)
def test_few_failures_do_not_block_whatever_their_share(
    tmp_path: Path, n_failed: int, n_asked: int, is_blocked: bool
) -> None:
    names = CONTRACT_FAILURES.schema.names
    rows = [
        {name: str(number) if name == "record" else "" for name in names} | {"stage": "reports", "n_asked": n_asked}
        for number in range(n_failed)
    ]
    failures = pa.Table.from_pylist(rows, CONTRACT_FAILURES.schema)
    snapshot = changed(small_index.freeze(tmp_path), "failures", lambda _: failures)
    assert bool(check_failures(snapshot, PublishingSettings())) == is_blocked


def test_stages_of_different_versions_do_not_mix(tmp_path: Path) -> None:
    whole = with_code_versions(
        small_index.freeze(tmp_path), {"text_units/000": "a", "text_units/001": "a", "communities/all": "b"}
    )
    assert check_mixed_prompts(whole, PublishingSettings()) == []


N_DOCUMENTS = 10


@pytest.mark.parametrize(
    ("n_published", "n_lost", "share", "waits"),
    [(10, 4, 0.2, False), (10, 5, 0.2, True), (25, 5, 0.2, False), (24, 5, 0.2, True), (100, 20, 0.2, False),
     (100, 21, 0.2, True), (10, 10, 1.0, False), (5, 5, 0.0, True)],
)  # fmt: skip
def test_a_loss_over_the_share_and_of_five_documents_waits(
    n_published: int, n_lost: int, share: float, waits: bool
) -> None:
    names = [f"{number:03d}" for number in range(n_published)]
    published = pa.table({"id": names, "path": [f"{name}.txt" for name in names]})
    problem = find_removal_problem(published, names[n_lost:], PublishingSettings(max_removed_share=share))
    assert bool(problem) == waits
    if waits:
        assert problem.startswith(f"{n_lost:,} of {n_published:,} published documents are gone, such as `000.txt`: ")
        assert "--allow-removal" in problem


@pytest.fixture
def root(tmp_path) -> Root:
    documents = {f"{number}.txt": f"They say that Scrooge met comet {number}." for number in range(N_DOCUMENTS)}
    root = indexed_root(tmp_path / "root", documents, "storage:\n  n_buckets: 1\n")
    return root


def test_the_index_waits_for_allow_removal_and_pays_for_nothing_before(root: Root) -> None:
    published = root.snapshots.current()
    for number in range(5):
        (root.path / "input" / f"{number}.txt").unlink()
    put(root.path, "new.txt", "Belle met Fezziwig.")
    heads = {path: path.read_bytes() for path in (root.path / "heads").rglob("*.json")}
    with pytest.raises(PipelineError, match=r"5 of 10 published documents are gone.*stays unchanged"):
        run_index(Root(root.path))
    assert root.snapshots.current() == published
    assert {path: path.read_bytes() for path in (root.path / "heads").rglob("*.json")} == heads
    assert run_index(Root(root.path), allow_removal=True).n_documents == 6
    assert root.snapshots.current() != published


def test_a_run_of_the_ui_fails_at_a_check_that_names_the_way_out(root: Root) -> None:
    from graphrag_pipeline.defs.build import build_definitions
    from graphrag_pipeline.defs.runs.instance import open_instance
    from graphrag_pipeline.defs.runs.naming import BUCKET_JOB, CORPUS_JOB

    published = root.snapshots.current()
    for number in range(5):
        (root.path / "input" / f"{number}.txt").unlink()

    def run(job: str, partition: str | None = None, **tags: str):
        with open_instance(root) as instance:
            return (
                build_definitions(root)
                .resolve_job_def(job)
                .execute_in_process(instance=instance, partition_key=partition, tags=tags, raise_on_error=False)
            )

    assert run(BUCKET_JOB, "000").success
    failed = run(CORPUS_JOB)
    [check] = [c for c in failed.get_asset_check_evaluations() if c.check_name == "removed_documents"]
    assert not failed.success and not check.passed and root.snapshots.current() == published
    assert f"launch the run with the tag {ALLOW_REMOVAL_TAG}: true" in (check.description or "")
    assert run(CORPUS_JOB, **{ALLOW_REMOVAL_TAG: "true"}).success
    assert root.snapshots.current() != published


def test_documents_that_moved_to_another_folder_are_not_gone(root: Root) -> None:
    (root.path / "input" / "archive").mkdir()
    for number in range(N_DOCUMENTS):
        (root.path / "input" / f"{number}.txt").rename(root.path / "input" / "archive" / f"{number}.txt")
    assert run_index(Root(root.path)).n_documents == N_DOCUMENTS
    assert set(Root(root.path).snapshots.open().table("documents")["path"].to_pylist()) == {
        f"archive/{number}.txt" for number in range(N_DOCUMENTS)
    }
