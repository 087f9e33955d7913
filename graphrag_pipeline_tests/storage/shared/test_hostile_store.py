"""A writer of the shared store cannot write outside the folders of the index on a reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.storage.manifests import hash_of
from graphrag_pipeline.storage.shared.objects import open_object_store
from graphrag_pipeline.storage.shared.state import SnapshotMarks, manifest_name, state_name
from graphrag_pipeline.storage.shared.transfer import Transfer
from graphrag_pipeline.storage.table_store import StoredFile, data_version_of
from graphrag_pipeline_tests.support.machines import index, machine, reader, state_of
from graphrag_pipeline_tests.support.thoroughness import usually

MakeMachine = Callable[[Path, str], Root]
Values = dict[str, Any]
HOSTILE = ["../../../settings.yaml", "/tmp/x.parquet", "..", "a/../../b", ""]


def set_table_file(values: Values, name: str) -> None:
    values["tables"]["entities"]["file"] = name


def set_table_name(values: Values, name: str) -> None:
    values["tables"][name] = values["tables"].pop("entities")


def set_adjacency(values: Values, name: str) -> None:
    values["adjacency"] = name


def set_vectors(values: Values, name: str) -> None:
    next(iter(values["vectors"].values()))["content"] = name


def set_stage_file(values: Values, name: str) -> None:
    next(iter(values["heads"].values()))["files"][0]["name"] = name


def files_of(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


def check_that_all_is_refused(
    url: str, path: Path, problem: str = "is not a name that graphrag-pipeline gives"
) -> None:
    """Assert that readers and writers refuse the store and write only below `cache/`."""
    for number, root in enumerate((reader(path / "reader", url), machine(path / "writer", url))):
        before = files_of(path)
        with pytest.raises(PipelineError, match=problem):
            if number:
                index(root)
            else:
                GraphIndex.open(root.path)
        after = files_of(path)
        assert [file for file in after if file not in before and "cache" not in file.parts] == []
        assert {file: after[file] for file in before} == before


@pytest.mark.parametrize("name", usually(HOSTILE, HOSTILE[0]))
@pytest.mark.parametrize("change", [set_table_file, set_table_name, set_adjacency, set_vectors, set_stage_file])
def test_a_manifest_with_a_name_that_leads_elsewhere_is_refused(
    indexed: MakeMachine, folder_url: str, tmp_path: Path, change: Callable[[Values, str], None], name: str
) -> None:
    indexed(tmp_path / "one", folder_url)
    objects, state = open_object_store(folder_url), state_of(folder_url)
    values = json.loads(objects.read(manifest_name(str(state.current))) or b"")
    change(values, name)
    forged = hash_of(values)  # the id is right, so only the names can show what it is
    objects.write(manifest_name(forged), json.dumps(values).encode())
    listed = replace(state, snapshots={forged: SnapshotMarks(1, "[]", "")}, current=forged, number=state.number + 1)
    objects.write(state_name(listed.number), listed.to_bytes())
    check_that_all_is_refused(folder_url, tmp_path / "others")


@pytest.mark.parametrize("part", ["snapshot id", "current", "head", "stored file", "rewritten"])
def test_a_state_with_a_name_that_leads_elsewhere_is_refused(
    indexed: MakeMachine, folder_url: str, tmp_path: Path, part: str
) -> None:
    indexed(tmp_path / "one", folder_url)
    state, bad = state_of(folder_url), "../../../settings"
    marks = SnapshotMarks(1, "[]", "")
    head = state.heads["entities/all"]
    stored = (StoredFile(f"{bad}.yaml", 1, 1),)
    changed: dict[str, dict[str, Any]] = {
        "snapshot id": {"snapshots": {**state.snapshots, bad: marks}},
        "current": {"current": bad},
        "head": {"heads": {**state.heads, f"entities/{bad}": replace(head, partition=bad)}},
        "stored file": {
            "heads": {**state.heads, "entities/all": replace(head, files=stored, data_version=data_version_of(stored))}
        },
        "rewritten": {"rewritten": {f"snapshots/vectors/{bad}.tar": 1}},
    }
    written = replace(state, number=state.number + 1, **changed[part])
    open_object_store(folder_url).write(state_name(written.number), written.to_bytes())
    check_that_all_is_refused(folder_url, tmp_path / "others")


def test_a_manifest_that_is_not_that_of_its_id_counts_as_missing(
    indexed: MakeMachine, folder_url: str, tmp_path: Path
) -> None:
    one = indexed(tmp_path / "one", folder_url)
    objects, name = open_object_store(folder_url), manifest_name(str(state_of(folder_url).current))
    whole = objects.read(name) or b""
    objects.write(name, whole.replace(b'"n_rows": ', b'"n_rows": 1', 1))
    other = reader(tmp_path / "two", folder_url)
    with pytest.raises(
        NoSnapshotError, match=r"snapshots/[0-9a-f]{16}\.json is damaged; run `graphrag-pipeline verify"
    ):
        GraphIndex.open(other.path)
    assert not (other.path / "snapshots").exists()
    with one.writing():
        pass
    index(machine(tmp_path / "three", folder_url))
    with GraphIndex.open(other.path) as opened:
        assert opened.search("Who is Bob Cratchit?", method="local").answer


@pytest.mark.parametrize(
    "name", ["settings.yaml", "../x", "tables/../settings.yaml", "/etc/passwd", "cache/x", "tables"]
)
def test_no_object_has_a_place_outside_the_index(tmp_path: Path, name: str) -> None:
    transfer = Transfer(tmp_path, open_object_store(f"file://{tmp_path}/store"), tmp_path / "cache")
    with pytest.raises(PipelineError, match="is not a name that graphrag-pipeline gives"):
        transfer.place(name)
