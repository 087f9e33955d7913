"""`kill -9` at any moment of `index`: readers keep a whole snapshot, and the next run ends as if undisturbed."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem.files import TEMPORARY_PREFIX
from graphrag_pipeline.pipeline.forgetting import forget_document
from graphrag_pipeline.pipeline.retention import prune
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.publishing.checks import check_snapshot
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.storage.vectors.folders import VectorFolder, holds_deleted
from graphrag_pipeline_tests.support.dagster.killed_runs import Change, Moment, draw_moments, kill_run, measure_run
from graphrag_pipeline_tests.support.models.model_roots import KEY, KEY_VARIABLE, ModelIndex
from graphrag_pipeline_tests.support.roots import (
    CAROL,
    build_tables,
    built_root,
    contract_bytes,
    indexed_root,
    put,
    table_bytes,
)
from graphrag_pipeline_tests.support.thoroughness import repetitions
from graphrag_pipeline_tests.support.two_snapshots import files_of

N_KILLS = repetitions(2, thorough=20)
N_KILLS_PUBLISHING = repetitions(1, thorough=6)
N_KILLS_BY_MODEL = repetitions(1, thorough=4)
N_KILLS_FORGETTING = repetitions(2, thorough=8)
MANIFEST = re.compile(r"/snapshots/[0-9a-f]{16}\.json$")
QUESTION = "Who carried Tiny Tim home?"


@dataclass(frozen=True)
class Course:
    """An update of a root, undisturbed.

    Attributes:
        start: a published root whose input was edited since.
        changes: changes of files by the update.
        answers: snapshot id -> bytes of its contract tables and its answers, before and after.
        tables: bytes of all stage tables afterwards.
    """

    start: Path
    changes: list[Change]
    answers: dict[str, tuple[dict[str, bytes], dict[str, Any]]]
    tables: dict[str, list[bytes]]
    end: str


def edit(root: Root) -> None:
    """Change, add and delete a document."""
    changed, deleted, *_ = sorted((root.path / "input").iterdir())
    text = changed.read_text(encoding="utf-8")
    put(root.path, changed.name, text + " They say that Marley pitied Tiny Tim.")
    put(root.path, "new.txt", "Old Fezziwig met Tiny Tim. They say that Fezziwig danced with Bob Cratchit.")
    deleted.unlink()


def read(root: Root) -> tuple[str, tuple[dict[str, bytes], dict[str, Any]]]:
    """Return a reader's view: the snapshot, the bytes of its tables, and an answer."""
    with GraphIndex.open(root.path) as index:
        answer = index.search(QUESTION, "local").to_dict()
        del answer["seconds"], answer["usage"]
        assert all(result.passed for result in check_snapshot(index.snapshot))
        return index.snapshot.id, (contract_bytes(root), answer)


def build_all(root: Root) -> None:
    """Update and publish all tables without Dagster."""
    build_tables(root, ALL_STAGES)


def follow(
    root: Root,
    scratch: Path,
    environment: Mapping[str, str] | None = None,
    update: Callable[[Root], object] = build_all,
) -> Course:
    """Edit a published root and update copies of it undisturbed: one by `update`, one by a measured `index`."""
    before = dict([read(root)])
    edit(root)
    calm, measured = copy(root.path, scratch / "calm"), copy(root.path, scratch / "measured")
    update(calm)
    changes = measure_run(measured.path, environment)
    end, after = read(calm)
    assert end not in before and read(measured) == (end, after)
    return Course(root.path, changes, {**before, end: after}, table_bytes(calm), end)


def copy(path: Path, to: Path) -> Root:
    shutil.copytree(path, to)
    return Root(to)


def kill(course: Course, moment: Moment, path: Path, environment: Mapping[str, str] | None = None) -> None:
    """Kill a copy of the update, read, let the next run finish, and compare with the undisturbed one."""
    root = copy(course.start, path)
    assert kill_run(root.path, moment, environment), "the run ended before its moment"
    reached, got = read(Root(root.path))
    assert got == course.answers[reached]
    run_index(Root(root.path))
    assert read(root) == (course.end, course.answers[course.end])
    assert table_bytes(root) == course.tables
    prune(root, 1, time.time() + 1)
    assert not list(root.path.rglob(f"{TEMPORARY_PREFIX}*")), "half-written files of a killed process are removed"
    assert read(root) == (course.end, course.answers[course.end])


def moments_of(changes: Sequence[Change]) -> list[Moment]:
    """Return random moments of the whole run, and of its end, which writes, checks and publishes the snapshot."""
    [manifest, *_] = (n for n, change in enumerate(changes) if MANIFEST.search(change.path))
    return draw_moments(changes, N_KILLS - N_KILLS_PUBLISHING) + draw_moments(changes, N_KILLS_PUBLISHING, manifest - 2)


@pytest.fixture(autouse=True, scope="module")
def _own_dagster_home() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DAGSTER_HOME", raising=False)
        yield


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    scratch = tmp_path_factory.mktemp("killed")
    root = indexed_root(scratch / "start", CAROL)
    return follow(root, scratch)


@pytest.mark.parametrize("number", range(N_KILLS))
def test_killed_at_a_random_moment(course: Course, number: int, tmp_path: Path) -> None:
    kill(course, moments_of(course.changes)[number], tmp_path / "root")


@pytest.mark.thorough
def test_killed_in_a_row_until_it_is_done(course: Course, tmp_path: Path) -> None:
    root, moment = copy(course.start, tmp_path / "root"), Moment(len(course.changes) // 4)
    n_kills = 0
    while kill_run(root.path, moment):
        n_kills += 1
        reached, got = read(Root(root.path))
        assert got == course.answers[reached]
    assert n_kills > 1
    assert read(root) == (course.end, course.answers[course.end])
    assert table_bytes(root) == course.tables


def test_killed_during_a_model_call(model_index: ModelIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {KEY_VARIABLE: KEY, **{f"GRAPHRAG__{m}_MODEL__MAX_CONCURRENCY": "2" for m in ("CHAT", "EMBEDDING")}}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    count_calls = model_index.server.count
    course = follow(Root(model_index.root.path), tmp_path, variables, run_index)
    n_undisturbed = count_calls() / 2  # it was indexed twice
    for number, moment in enumerate(draw_moments(course.changes, N_KILLS_BY_MODEL)):
        before = count_calls()
        kill(course, moment, tmp_path / f"killed{number}", variables)
        # A reply on its way when its process dies is lost; a stored reply is never requested again.
        assert count_calls() - before <= n_undisturbed + 2


SECRET = "secret.txt"


def forget_secret(root: Root) -> None:
    forget_document(root, SECRET)


def forget_again(root: Root) -> None:
    """Recover from a killed `forget`: run it again, and `index` if the error requires it."""
    try:
        forget_secret(root)
    except PipelineError as error:
        if "forgotten already" in str(error):
            return
        assert "run `graphrag-pipeline index`" in str(error)
        build_tables(root, ALL_STAGES)
        forget_secret(root)


def what_is_left(root: Root) -> tuple[set[Path], list[VectorFolder]]:
    """Files but those of LanceDB, whose names are random, and folders of LanceDB that hold deleted rows."""
    folders = root.snapshots.open().manifest.vectors.values()
    held = [folder for folder in folders if holds_deleted(root.snapshots.folder / "vectors", folder)]
    return {path for path in files_of(root) if path.parts[1] != "vectors"}, held


def test_killed_while_it_forgets_a_document(tmp_path: Path) -> None:
    names = [f"{first}{last}" for first in ("Bram", "Quill", "Ostr", "Wimble") for last in ("ton", "ford", "ander")]
    documents = {f"{name}.txt": f"They say that {name} met Scrooge in London." for name in names}
    root = built_root(
        tmp_path / "start", {**documents, SECRET: "They say that Zaphodine met Scrooge."}, stages=ALL_STAGES
    )
    (root.path / "input" / SECRET).unlink()
    build_tables(root, ALL_STAGES)
    assert what_is_left(root)[1], "kept vectors are rewritten"
    calm, measured = copy(root.path, tmp_path / "calm"), copy(root.path, tmp_path / "measured")
    forget_secret(calm)
    left, answers = what_is_left(calm), dict([read(calm)])
    assert not left[1]
    for number, moment in enumerate(draw_moments(measure_run(measured.path, work=forget_secret), N_KILLS_FORGETTING)):
        killed = copy(root.path, tmp_path / f"killed{number}")
        assert kill_run(killed.path, moment, work=forget_secret)
        forget_again(killed)
        assert what_is_left(killed) == left, moment
        assert dict([read(killed)]) == answers
