"""A publication that loses many documents waits until the user allows it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.defs.runs.naming import ALLOW_REMOVAL_TAG
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.publishing.removal import find_removal_problem
from graphrag_pipeline.settings.settings import PublishingSettings
from graphrag_pipeline_tests.support.roots import indexed_root, put

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
