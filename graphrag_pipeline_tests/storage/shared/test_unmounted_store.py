"""A machine that begins at a store that only seems empty, as a folder that is not mounted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.errors import LeaseLostError, PipelineError
from graphrag_pipeline.pipeline.progress import RunObserver
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline_tests.support.machines import again, index, machine, opened_snapshot
from graphrag_pipeline_tests.support.roots import build_tables, put
from graphrag_pipeline_tests.support.thoroughness import usually

OTHERS = {"twist.txt": "Oliver Twist met Fagin in London.", "nancy.txt": "Nancy met Bill Sikes in London."}


class Mount:
    """A store below a link, which leads to its folder or to an empty one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = f"file://{folder}/store"
        self.point_at("mounted")

    def point_at(self, name: str) -> None:
        (self._folder / name).mkdir(exist_ok=True)
        link = self._folder / "store"
        link.unlink(missing_ok=True)
        link.symlink_to(self._folder / name)


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    return Mount(tmp_path)


@pytest.mark.parametrize("error", usually([LeaseLostError, KeyboardInterrupt], LeaseLostError))
def test_a_machine_that_began_there_takes_the_index_when_it_is_back(
    indexed: Callable[[Path, str], Root], mount: Mount, tmp_path: Path, error: type[BaseException]
) -> None:
    one = indexed(tmp_path / "one", mount.url)
    mount.point_at("not_mounted")
    two = machine(tmp_path / "two", mount.url, OTHERS)
    with pytest.raises(error), two.writing():
        build_tables(two, ALL_STAGES)
        mount.point_at("mounted")
        if error is KeyboardInterrupt:
            raise error
    assert opened_snapshot(two) == opened_snapshot(one)
    index(two)
    assert opened_snapshot(one) == opened_snapshot(two)
    assert index(two) == []


def test_its_documents_are_compared_with_the_index_when_it_is_back(
    indexed: Callable[[Path, str], Root], mount: Mount, tmp_path: Path
) -> None:
    indexed(tmp_path / "one", mount.url)
    mount.point_at("not_mounted")
    two = machine(tmp_path / "two", mount.url, OTHERS)

    class Mounting(RunObserver):
        def plan(self, stale: object) -> None:
            mount.point_at("mounted")

    with pytest.raises(LeaseLostError):
        run_index(two, Mounting())
    with pytest.raises(PipelineError, match="an index of 3 documents, none of which is in"):
        run_index(again(two))


@pytest.mark.thorough
def test_a_deletion_after_the_first_upload_is_meant(mount: Mount, tmp_path: Path) -> None:
    one = machine(tmp_path / "one", mount.url, n_buckets=1)
    put(one.path, "four.txt", "Topper met Bob Cratchit.")
    index(one)
    (one.path / "input" / "four.txt").unlink()
    assert run_index(again(one)).n_documents == 3
