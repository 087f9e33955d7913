"""The target of an export: a new or empty folder or an earlier export, written whole or not at all."""

import json
from pathlib import Path

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.interchange import index_export
from graphrag_pipeline.interchange.export_formats import EXPORT_FORMATS
from graphrag_pipeline.interchange.index_export import MARKER, export_snapshot
from graphrag_pipeline.pipeline.root import init_root
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.tables import CONTRACT_TABLES
from graphrag_pipeline_tests.support.corpora import small_index
from graphrag_pipeline_tests.support.corpora.exported_index import freeze_hard_index


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    init_root(root)
    SnapshotStore(root).point_at(freeze_hard_index(root).id)
    return root


@pytest.fixture(scope="module")
def snapshot(root):
    return SnapshotStore(root).open()


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_new_and_an_empty_folder_are_filled_and_nothing_is_left_beside(snapshot, tmp_path):
    (tmp_path / "empty").mkdir()
    for target in (tmp_path / "empty", tmp_path / "not" / "there"):
        assert export_snapshot(snapshot, target, "graphml").folder == target
        marker = json.loads((target / MARKER).read_text())
        assert marker["snapshot"] == snapshot.id and marker["files"] == ["graph.graphml"]
        assert [path.name for path in target.parent.iterdir() if path.name.startswith(".")] == []


def test_an_empty_index_is_exported(tmp_path):
    tables = {name: table.empty() for name, table in CONTRACT_TABLES.items()}
    empty = small_index.freeze(tmp_path / "root", tables)
    for format in EXPORT_FORMATS:
        report = export_snapshot(empty, tmp_path / "out", format)
        assert set(report.rows.values()) == {0}


def test_an_earlier_export_of_any_format_is_replaced(snapshot, tmp_path):
    for format in (*EXPORT_FORMATS, "csv"):
        export_snapshot(snapshot, tmp_path / "out", format)
        assert json.loads((tmp_path / "out" / MARKER).read_text())["format"] == format
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [MARKER, "nodes", "relationships"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("marker", [None, "no JSON", '{"files": 3}', '{"files": ["nodes/"]}', "[]"])
def test_a_folder_with_other_files_is_refused_and_left_alone(snapshot, tmp_path, marker):
    (tmp_path / "thesis.txt").write_text("years of work")
    if marker:
        (tmp_path / MARKER).write_text(marker)
    before = contents(tmp_path)
    with pytest.raises(PipelineError, match="no export wrote"):
        export_snapshot(snapshot, tmp_path, "csv")
    assert contents(tmp_path) == before


def test_a_file_added_to_an_export_is_not_deleted(snapshot, tmp_path):
    export_snapshot(snapshot, tmp_path / "out", "csv")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(PipelineError, match=r"notes\.txt"):
        export_snapshot(snapshot, tmp_path / "out", "csv")


@pytest.mark.parametrize("place", ["lancedb/notes.txt", "lancedb/entity_description.lance/mine.bin", "lancedb/mine/"])
def test_what_was_added_below_a_folder_of_an_export_is_named_and_not_deleted(snapshot, tmp_path, place):
    out = tmp_path / "out"
    export_snapshot(snapshot, out, "graphrag")
    if place.endswith("/"):
        (out / place).mkdir()
    else:
        (out / place).write_text("years of work")
    before = contents(out)
    with pytest.raises(PipelineError, match=f"`{place}`, which no export wrote"):
        export_snapshot(snapshot, out, "graphrag")
    assert contents(out) == before and (out / place).exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_that_is_added_while_an_export_is_written_is_not_deleted(snapshot, tmp_path, monkeypatch):
    export_snapshot(snapshot, tmp_path / "out", "csv")
    write = index_export._find_writer("csv")

    def write_slowly(snapshot, folder):
        (tmp_path / "out" / "nodes" / "mine.csv").write_text("mine")
        return write(snapshot, folder)

    monkeypatch.setattr(index_export, "_find_writer", lambda _: write_slowly)
    with pytest.raises(PipelineError, match=r"`nodes/mine\.csv`"):
        export_snapshot(snapshot, tmp_path / "out", "csv")
    assert (tmp_path / "out" / "nodes" / "mine.csv").read_text() == "mine"


def test_folders_of_an_export_of_an_earlier_release_are_refused(snapshot, tmp_path):
    """Its marker listed only the names at the top, so files below a folder may be the user's."""
    export_snapshot(snapshot, tmp_path, "csv")
    (tmp_path / MARKER).write_text('{"names": ["nodes", "relationships"]}')
    with pytest.raises(PipelineError, match="`nodes/`"):
        export_snapshot(snapshot, tmp_path, "csv")
    (tmp_path / "graph").mkdir()
    export_snapshot(snapshot, tmp_path / "graph", "graphml")
    (tmp_path / "graph" / MARKER).write_text('{"names": ["graph.graphml"]}')
    export_snapshot(snapshot, tmp_path / "graph", "graphml")


def test_a_file_and_a_folder_below_a_file_are_refused_as_targets(snapshot, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PipelineError, match="is not a folder"):
        export_snapshot(snapshot, tmp_path / "file", "csv")
    with pytest.raises(PipelineError, match="cannot be written"):
        export_snapshot(snapshot, tmp_path / "file" / "out", "csv")


def test_a_write_that_fails_leaves_the_earlier_export(snapshot, tmp_path, monkeypatch):
    export_snapshot(snapshot, tmp_path / "out", "csv")
    before = contents(tmp_path)

    def fill_the_disk(_, folder):
        (folder / "half").write_text("")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(index_export, "_find_writer", lambda _: fill_the_disk)
    with pytest.raises(PipelineError, match="No space left on device"):
        export_snapshot(snapshot, tmp_path / "out", "csv")
    assert contents(tmp_path) == before


def test_the_same_snapshot_gives_the_same_bytes(snapshot, tmp_path):
    for format in EXPORT_FORMATS:
        for name in ("one", "two"):
            export_snapshot(snapshot, tmp_path / name, format)
        one, two = (without_names_of_lancedb(contents(tmp_path / name)) for name in ("one", "two"))
        assert one == two


def without_names_of_lancedb(found):
    """The files of an export but those of LanceDB, which it names at random; the marker does not list these either."""
    marker = json.loads(found[Path(MARKER)])
    marker["files"] = [path for path in marker["files"] if not path.startswith("lancedb/")]
    return {path: data for path, data in found.items() if path.parts[0] != "lancedb"} | {Path(MARKER): marker}


def test_a_link_to_a_folder_stays_a_link(snapshot, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "behind")
    export_snapshot(snapshot, tmp_path / "link", "graphml")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "behind" / "graph.graphml").is_file()


def test_the_command_exports_the_published_snapshot(root, snapshot, tmp_path, call):
    finished = call("export", tmp_path / "out", "--format", "csv", "--root", root)
    assert finished.status == 0, finished.err
    assert "nodes/Entity.csv: 5" in finished.out and snapshot.id in finished.out
    (tmp_path / "out" / "mine").write_text("")
    refused = call("--root", root, "export", tmp_path / "out")
    assert refused.status == 1 and "no export wrote" in refused.err
