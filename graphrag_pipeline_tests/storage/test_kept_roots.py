"""Roots of earlier releases open, answer, index and verify; each release keeps one (`support/kept_root.py`)."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

from graphrag_pipeline.errors import NewerFormatError, PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.pipeline.retention import prune
from graphrag_pipeline.pipeline.root import Root, init_root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.pipeline.verification import verify_root
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.storage import formats, manifests, snapshot_store, table_store
from graphrag_pipeline.storage.formats import FileFormat, RootStep, installed_release
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline_tests.support.kept_root import ENDING, KEPT, MAX_BYTES, pack_root, unpack_root
from graphrag_pipeline_tests.support.roots import build_tables, put

ARCHIVES = sorted(KEPT.glob(f"*{ENDING}"))


@pytest.fixture(params=ARCHIVES, ids=lambda archive: archive.name)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A root of a release, unpacked."""
    unpack_root(request.param, tmp_path / "root")
    return tmp_path / "root"


def ask(folder: Path, question: str) -> str:
    with GraphIndex.open(folder) as index:
        return index.search(question, method="local").answer


def test_this_release_has_a_kept_root() -> None:
    assert f"{installed_release()}{ENDING}" in [archive.name for archive in ARCHIVES]


def test_a_kept_root_is_small_and_packs_to_the_same_bytes(kept: Path, tmp_path: Path) -> None:
    pack_root(kept, tmp_path / "again")
    archive = next(archive for archive in ARCHIVES if archive.read_bytes() == (tmp_path / "again").read_bytes())
    assert archive.stat().st_size < MAX_BYTES


def test_a_kept_root_opens_answers_indexes_again_and_verifies(kept: Path) -> None:
    assert "Scrooge" in ask(kept, "Who was a partner of Marley?")
    assert verify_root(Root(kept), is_repairing=False).is_whole
    first = Root(kept).snapshots.current()
    put(kept, "fezziwig.txt", "At the ball old Fezziwig danced with Mrs. Fezziwig.")
    build_tables(Root(kept), tuple(ALL_STAGES))
    assert Root(kept).snapshots.current() != first
    assert "Fezziwig" in ask(kept, "Who danced with Mrs. Fezziwig?")
    assert "Scrooge" in ask(kept, "Who was a partner of Marley?")
    assert verify_root(Root(kept), is_repairing=False).is_whole


def test_a_kept_root_whose_manifest_is_newer_is_refused(kept: Path) -> None:
    for path in (kept / "snapshots").glob("*.*"):
        if path.suffix in (".json", ".manifest"):
            path.write_text('{"format": 99, "needs_release": "9.0"}', encoding="utf-8")
    with pytest.raises(NewerFormatError, match=r"needs release 9\.0 or later"):
        ask(kept, "Who was a partner of Marley?")


# ------------------------------------------------------------------------- steps to a later version, as a release makes


def _move_current(root: Path) -> None:
    """A step as of a later release: the pointer lies in a folder of its own; it may run again."""
    new, old = root / "snapshots" / "published" / "current.json", root / "snapshots" / "current.json"
    if old.exists():
        files.replace(new, old.read_bytes())
        old.unlink()


def _name_current(root: Path) -> None:
    files.replace(root / "snapshots" / "published" / "name", b"current")


STEPS = (
    RootStep("0.2.0", "moves the pointer to a folder of its own", _move_current),
    RootStep("0.3.0", "names the pointer", _name_current),
)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A later release, whose pointer is in another place."""

    def current(self: SnapshotStore) -> str:
        path = self.folder / "published" / "current.json"
        return str(json.loads(path.read_bytes())["snapshot"])

    monkeypatch.setattr(formats, "STEPS", STEPS)
    monkeypatch.setattr(SnapshotStore, "current", current)
    return monkeypatch


def test_a_kept_root_moves_once_by_each_step_and_says_so(
    kept: Path, later: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert "Scrooge" in ask(kept, "Who was a partner of Marley?")
    said = [record.message for record in caplog.records if "since an earlier release wrote it" in record.message]
    assert [line.partition(": ")[2].partition(",")[0] for line in said] == [
        "release 0.2.0 moves the pointer to a folder of its own",
        "release 0.3.0 names the pointer",
    ]
    caplog.clear()
    assert "Scrooge" in ask(kept, "Who was a partner of Marley?")
    assert "earlier release" not in caplog.text
    later.setattr(formats, "STEPS", STEPS[:1])
    with pytest.raises(NewerFormatError, match=r"root\.json` has format 3, which needs release 0\.3\.0 or later"):
        Root(kept)


@pytest.mark.parametrize("name", ["second step", "flush", "record"])
def test_a_step_that_was_interrupted_runs_again(kept: Path, later: pytest.MonkeyPatch, name: str) -> None:
    def kill(*_: object) -> None:
        raise KeyboardInterrupt("as if killed")

    with later.context() as patched:
        if name == "second step":
            patched.setattr(formats, "STEPS", (STEPS[0], RootStep("0.3.0", "is killed", kill)))
        else:
            patched.setattr(files, "flush_to_disk" if name == "flush" else "replace_durably", kill)
        with pytest.raises(KeyboardInterrupt):
            Root(kept)
    assert "Scrooge" in ask(kept, "Who was a partner of Marley?")
    assert (kept / "snapshots" / "published" / "name").exists()


def test_a_user_who_may_not_write_gets_the_way_out(kept: Path, later: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(kept))

    later.setattr(formats, "STEPS", (RootStep("0.2.0", "moves the pointer", refuse),))
    with pytest.raises(PipelineError) as refused:
        Root(kept)
    assert f"`{kept}` has version 1, of an earlier release, and this release reads version 2" in str(refused.value)
    assert "Run `graphrag-pipeline verify` once as a user who may write there: it moves the pointer" in str(
        refused.value
    )
    assert "Permission denied" in str(refused.value)


def test_a_new_root_has_the_version_of_its_release(tmp_path: Path, later: pytest.MonkeyPatch) -> None:
    def fail(_: Path) -> None:
        raise AssertionError("a new root needs no step")

    later.setattr(formats, "STEPS", (RootStep("0.2.0", "fails", fail),))
    init_root(tmp_path)
    Root(tmp_path)
    (tmp_path / "heads" / "documents").mkdir(parents=True)
    Root(tmp_path)


def test_the_version_of_a_root_survives_prune_and_verify(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "STEPS", (RootStep("0.2.0", "does nothing", lambda _: None),))
    prune(Root(kept), 1, float("inf"))
    assert verify_root(Root(kept), is_repairing=True).findings == ()
    assert (kept / "snapshots" / "root.json").exists()
    (kept / "snapshots" / "root.json").write_bytes(b"\0" * 40)
    with pytest.raises(PipelineError, match=r"root\.json` is damaged"):
        Root(kept)
    (kept / "snapshots" / "root.json").write_bytes(b'{"version": 2}')
    assert "Scrooge" in ask(kept, "Who was a partner of Marley?")


def test_a_kept_root_whose_files_have_an_older_version_needs_no_rights_to_write(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON files change in memory, each time that they are read."""
    seen = []
    for module, name in ((manifests, "FORMAT"), (table_store, "HEAD_FORMAT"), (snapshot_store, "POINTER_FORMAT")):
        step = functools.partial(lambda name, values: seen.append(name) or values, name)
        monkeypatch.setattr(module, name, FileFormat(2, "0.2.0", {1: step}))
    before = {path: path.read_bytes() for path in kept.rglob("*.json")}
    assert "Scrooge" in ask(kept, "Who was a partner of Marley?")
    assert Root(kept).tables.head("documents", "000")
    assert set(seen) == {"FORMAT", "HEAD_FORMAT", "POINTER_FORMAT"}
    assert {path: path.read_bytes() for path in before} == before
