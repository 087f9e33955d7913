"""Prune and forget remove nothing while a manifest, a head or a pointer cannot be read, and name the file."""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.errors import NewerFormatError, NoSnapshotError, PipelineError
from graphrag_pipeline.filesystem.files import CHECK, seal
from graphrag_pipeline.interchange.graphrag_import import import_graphrag
from graphrag_pipeline.pipeline.forgetting import forget_document
from graphrag_pipeline.pipeline.retention import prune
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.verification import verify_root
from graphrag_pipeline.storage.formats import installed_release
from graphrag_pipeline_tests.support.paths import MICROSOFT_INDEX
from graphrag_pipeline_tests.support.roots import build_tables, contract_bytes, make_root, put
from graphrag_pipeline_tests.support.thoroughness import sums, usually
from graphrag_pipeline_tests.support.two_snapshots import EVERYTHING, _indexed_twice, files_of, first_of, root

__all__ = ["_indexed_twice", "root"]

Damage = Callable[[bytes], bytes]


def edited(data: bytes, **changes: object) -> bytes:
    """Change values of a file and the hash of its content, as another release would write it."""
    values = json.loads(data)
    edit = {key: value for key, value in (values | changes).items() if key != CHECK}
    is_sealed = CHECK in values
    return seal(edit) if is_sealed else json.dumps(edit, indent=1, sort_keys=True, ensure_ascii=False).encode()


def with_flip_in_a_file_name(data: bytes) -> bytes:
    """Flip one bit of a digit, so that the JSON is valid and names another file."""
    at = data.index(b".parquet") - 1
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def documents_of(root: Root) -> list[str]:
    return sorted(root.snapshots.open().table("documents")["id"].to_pylist())


DAMAGES: dict[str, Damage] = {
    "one flipped bit in a name": with_flip_in_a_file_name,
    "one flipped bit in a key": lambda data: data.replace(b'"tables"', b'"uables"').replace(b'"files"', b'"gales"'),
    "an unknown key": lambda data: edited(data, seals={"a": 1}),
    "a newer format": lambda data: edited(data, format=2),
    "a newer format with an unknown key": lambda data: edited(data, format=2, needs_release="0.9.0", seals={"a": 1}),
    "no object": lambda data: b"[]",
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
}
FEW = ("one flipped bit in a name", "a newer format", "cut")
"""Damages for tests of what reads a damaged file; every one of them is tried at a head."""
LOST = [(".json",), (".json", ".manifest"), (".json", ".checked"), (".json", ".manifest", ".checked")]


@pytest.fixture(scope="module")
def _imported_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_root(tmp_path_factory.mktemp("imported") / "root", {})
    import_graphrag(MICROSOFT_INDEX, made.path, made.embedder, made.settings)
    return made.path


@pytest.fixture
def imported(_imported_once: Path, tmp_path: Path) -> Root:
    shutil.copytree(_imported_once, tmp_path / "imported")
    return Root(tmp_path / "imported")


def check_that_nothing_is_removed(root: Root, path: Path) -> None:
    """Assert that prune, its dry run and forget name `path` and leave every file."""
    before = files_of(root)
    for is_dry_run in (True, False):
        with pytest.raises(PipelineError, match=path.name):
            prune(Root(root.path), 1, math.inf, is_dry_run)
    with pytest.raises(PipelineError, match=path.name):
        forget_document(Root(root.path), "three.md")
    assert files_of(root) == before


@pytest.mark.parametrize("name", usually(DAMAGES, *FEW))
def test_an_imported_index_whose_manifest_cannot_be_read_loses_nothing(imported: Root, name: str) -> None:
    path = imported.snapshots.path_of(str(imported.snapshots.current()))
    whole, contents = path.read_bytes(), contract_bytes(imported)
    path.write_bytes(DAMAGES[name](whole))
    check_that_nothing_is_removed(imported, path)
    path.write_bytes(whole)
    assert contract_bytes(Root(imported.path)) == contents
    prune(imported, 1, math.inf)
    assert contract_bytes(Root(imported.path)) == contents


@pytest.mark.parametrize(("lost", "has_pointer"), sums(LOST, [True, False]))
def test_an_imported_index_whose_manifest_is_lost_loses_nothing(
    imported: Root, lost: tuple[str, ...], has_pointer: bool
) -> None:
    snapshot_id, contents = str(imported.snapshots.current()), contract_bytes(imported)
    path = imported.snapshots.path_of(snapshot_id)
    for suffix in lost:
        path.with_suffix(suffix).unlink()
    if not has_pointer:
        (path.parent / "current.json").unlink()
    before = files_of(imported)
    with pytest.raises(PipelineError, match="nothing was removed"):
        prune(Root(imported.path), 1, math.inf)
    assert files_of(imported) == before
    found = verify_root(Root(imported.path))
    put(imported.path, "new.md", "Zed Young works at Foo Company in Rome.")
    with pytest.raises(PipelineError, match="holds an imported index"):
        run_index(Root(imported.path))
    assert found.findings
    assert has_pointer or ".manifest" in lost or any(item.path == f"snapshots/{path.name}" for item in found.findings)
    repaired = verify_root(Root(imported.path), is_repairing=True)
    if ".manifest" in lost or (".checked" in lost and not has_pointer):
        assert not repaired.is_whole, "only an import brings it back"
    else:
        assert repaired.is_whole
        assert contract_bytes(Root(imported.path)) == contents
        prune(Root(imported.path), 1, math.inf)
        assert contract_bytes(Root(imported.path)) == contents


def test_an_imported_index_whose_pointer_is_lost_is_published_again(imported: Root) -> None:
    contents = contract_bytes(imported)
    (imported.snapshots.folder / "current.json").unlink()
    with pytest.raises(NoSnapshotError, match=r"current\.json` is missing.*verify --repair"):
        Root(imported.path).open_snapshot()
    assert [item.kind for item in verify_root(Root(imported.path)).findings] == ["pointer"]
    put(imported.path, "new.md", "Zed Young works at Foo Company in Rome.")
    with pytest.raises(PipelineError, match="holds an imported index"):
        run_index(Root(imported.path))
    assert verify_root(Root(imported.path), is_repairing=True).is_whole
    assert contract_bytes(Root(imported.path)) == contents and verify_root(Root(imported.path)).findings == ()


def test_an_older_snapshot_whose_manifest_is_lost_comes_back(root: Root) -> None:
    older = first_of(root)
    path = root.snapshots.path_of(older)
    path.unlink()
    check_that_nothing_is_removed(root, path)
    assert verify_root(Root(root.path), is_repairing=True).is_whole
    assert older in Root(root.path).snapshots.ids() and not Root(root.path).snapshots.find_damage(older)
    prune(Root(root.path), 1, math.inf)
    assert not list(path.parent.glob(f"{older}*"))


def test_a_link_to_nothing_in_place_of_a_manifest_counts(root: Root) -> None:
    path = root.snapshots.path_of(first_of(root))
    path.unlink()
    path.symlink_to(path.with_suffix(".gone"))
    check_that_nothing_is_removed(root, path)


@pytest.mark.parametrize(("which", "by"), [(".json", 10**18), (".json", 1), (".manifest", 10**18)])
def test_a_changed_time_of_a_manifest_is_found_and_repaired(root: Root, which: str, by: int) -> None:
    older = first_of(root)
    path, ids = root.snapshots.path_of(older), root.snapshots.ids()
    damaged = path.with_suffix(which)
    whole = damaged.read_bytes()
    written = damaged.stat()
    created = json.loads(whole)["created_ns"]
    later = created + (10**18 if which == ".manifest" else by)
    damaged.write_bytes(whole.replace(str(created).encode(), str(later).encode()))
    os.utime(damaged, ns=(written.st_atime_ns, written.st_mtime_ns))
    found = verify_root(Root(root.path))
    assert [(item.path, item.kind) for item in found.findings] == [
        (f"snapshots/{path.name}", "manifest, which differs from its copy")
    ]
    assert verify_root(Root(root.path), is_repairing=True).is_whole
    assert path.read_bytes() == path.with_suffix(".manifest").read_bytes() == whole
    assert Root(root.path).snapshots.ids() == ids and verify_root(Root(root.path)).findings == ()


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("which", usually(["an older snapshot", "a head"], "a head"))
def test_any_manifest_and_any_head_count(root: Root, which: str, damage: Damage) -> None:
    head = root.path / "heads" / "entities" / "all.json"
    path = head if which == "a head" else root.snapshots.path_of(first_of(root))
    path.write_bytes(damage(path.read_bytes()))
    check_that_nothing_is_removed(root, path)


@pytest.mark.parametrize("name", ["a newer format", "a newer format with an unknown key", "no object", "cut", "empty"])
def test_the_layout_counts(root: Root, name: str) -> None:
    root.tables.check_layout(root.settings.storage.n_buckets)
    path = root.tables.layout_path
    path.write_bytes(DAMAGES[name](path.read_bytes()))
    check_that_nothing_is_removed(root, path)


@pytest.mark.parametrize("name", ["current.json", "pinned.json"])
@pytest.mark.parametrize("data", [b"", b'{"snapshot": "0123456789abcdef"}', b'{"snapshot": "../../settings"}'])
def test_a_pointer_that_names_no_snapshot_counts(root: Root, name: str, data: bytes) -> None:
    path = root.snapshots.folder / name
    path.write_bytes(data)
    check_that_nothing_is_removed(root, path)


def test_every_unreadable_file_is_named(root: Root) -> None:
    paths = [root.snapshots.path_of(first_of(root)), root.path / "heads" / "entities" / "all.json"]
    for path in paths:
        path.write_bytes(b"{")
    with pytest.raises(PipelineError) as caught:
        prune(root, 1, math.inf)
    assert all(str(path) in str(caught.value) for path in paths)
    assert "nothing was removed" in str(caught.value)


def test_a_file_without_the_right_to_read_it_counts(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root.snapshots.path_of(first_of(root))
    read = Path.read_bytes

    def refuse(self: Path) -> bytes:
        if self == path:
            raise PermissionError(13, "Permission denied", str(self))
        return read(self)

    monkeypatch.setattr(Path, "read_bytes", refuse)  # the tests may run as a user who may read everything
    check_that_nothing_is_removed(root, path)


def test_a_newer_root_is_refused_with_the_release_that_reads_it(root: Root) -> None:
    path = root.snapshots.path_of(str(root.snapshots.current()))
    path.write_bytes(edited(path.read_bytes(), format=2, needs_release="0.9.0", seals={}))
    with pytest.raises(NewerFormatError, match=r"format 2.* release 0\.9\.0 or later"):
        root.snapshots.open()
    path.write_bytes(edited(path.read_bytes(), format=7, needs_release=3))
    with pytest.raises(NewerFormatError, match=rf"format 7.* a later release than {re.escape(installed_release())}"):
        root.snapshots.open()


def test_no_flipped_bit_of_a_manifest_or_head_removes_a_file_that_is_used(root: Root) -> None:
    """Flip 120 random bits, one at a time: prune refuses, or keeps every file of the published snapshot."""
    contents, rng = contract_bytes(root), random.Random(15)
    needed = files_of(root) - {path for path in files_of(root) if path.name.startswith(first_of(root))}
    paths = [root.snapshots.path_of(str(root.snapshots.current())), *(root.path / "heads").glob("*/*.json")]
    for _ in range(120):
        path = rng.choice([paths[0], rng.choice(paths)])
        whole = path.read_bytes()
        data, at = bytearray(whole), rng.randrange(len(whole))
        data[at] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            planned = prune(Root(root.path), 2, math.inf, is_dry_run=True)
        except PipelineError as error:
            assert path.name in str(error) or path.name.removesuffix(".json") in str(error)
        else:
            kept = files_of(root) - {found.relative_to(root.path) for found in planned.paths}
            assert needed <= kept, (path, at)
            assert not planned.snapshots and not planned.collections
        path.write_bytes(whole)
    assert contract_bytes(Root(root.path)) == contents


@pytest.mark.parametrize(
    "name",
    usually(["one flipped bit in a name", "one flipped bit in a key", "an unknown key", "cut", "empty"], *FEW),
)
def test_index_goes_on_after_damage_and_prune_after_the_lost_file_is_deleted(root: Root, name: str) -> None:
    documents = documents_of(root)
    paths = [root.snapshots.path_of(str(root.snapshots.current())), root.path / "heads" / "entities" / "all.json"]
    for path in paths:
        path.write_bytes(DAMAGES[name](path.read_bytes()))
    build_tables(Root(root.path), EVERYTHING)
    assert documents_of(Root(root.path)) == documents
    with pytest.raises(PipelineError, match=f"{paths[0].name}.* it is lost, .* delete it"):
        prune(Root(root.path), 9, math.inf)
    for left in (".manifest", ".checked"):
        paths[0].unlink(missing_ok=True)
        with pytest.raises(PipelineError, match=f"is missing, but `.*{left}` is there"):
            prune(Root(root.path), 9, math.inf)
        paths[0].with_suffix(left).unlink()
    prune(Root(root.path), 9, math.inf)
    assert documents_of(Root(root.path)) == documents


def test_index_refuses_a_newer_head_and_leaves_it(root: Root) -> None:
    path = root.path / "heads" / "entities" / "all.json"
    path.write_bytes(edited(path.read_bytes(), format=3))
    newer = path.read_bytes()
    with pytest.raises(NewerFormatError, match="has format 3"):
        build_tables(Root(root.path), EVERYTHING)
    assert path.read_bytes() == newer
