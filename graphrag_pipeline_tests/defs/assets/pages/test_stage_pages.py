"""What the page of a partition shows: the highest records first, in words, with links, plots and whole reports."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.defs.assets.pages.stage_contents import StageContents
from graphrag_pipeline.defs.assets.pages.stage_pages import describe_contents
from graphrag_pipeline.defs.assets.published import of_snapshot
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, STAGES
from graphrag_pipeline_tests.support.roots import build_tables, built_root, make_root, put

_HASH = re.compile(r"\b[0-9a-f]{32}\b")
_SVG = "{http://www.w3.org/2000/svg}"
_REPR = re.compile(r"None|\[\{|\['|\{'")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    root = make_root(tmp_path_factory.mktemp("pages") / "root")
    put(
        root.path,
        "evil.txt",
        "They say that Scrooge met ![x](http://evil.example/x.png) Marley. <b>Bob Cratchit</b> wept.",
    )
    build_tables(root)
    return root


def page(root: Root, stage: str, partition: str = WHOLE) -> dict[str, Any]:
    shown = describe_contents(StageContents(root, ALL_STAGES[stage], partition))
    return {name: getattr(value, "value", value) for name, value in shown.items()}


def rows(table: str) -> list[list[str]]:
    """Return the cells of the rows of a markdown table."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


@pytest.mark.parametrize("stage", STAGES)
def test_previews_hold_no_hashes_and_no_python(root: Root, stage: str) -> None:
    for partition in STAGES[stage].partitions(root.settings):
        shown = page(root, stage, partition)
        assert shown
        for name, value in shown.items():
            if name.startswith("preview") or "in full" in name:
                assert not _HASH.search(value) and not _REPR.search(value) and "](http:" not in value, (name, value)


def test_the_preview_of_an_empty_bucket_names_the_bucket(tmp_path: Path) -> None:
    empty = built_root(tmp_path / "root", settings="storage: {n_buckets: 8}", stages=["corpus_manifest", "documents"])
    keys = STAGES["documents"].partitions(empty.settings)
    previews = {key: page(empty, "documents", key)["preview of documents"] for key in keys}
    assert sum(text == f"no rows in bucket {key}" for key, text in previews.items()) >= len(keys) - 3


def test_entities_are_ranked_by_degree_and_reports_by_rank(root: Root) -> None:
    entities = root.tables.read("entities", WHOLE)
    degrees = [int(row[2]) for row in rows(page(root, "graph")["preview of entities"])]
    assert degrees == sorted(entities["degree"].to_pylist(), reverse=True)[:10]
    shown = page(root, "community_reports")
    ranks = root.tables.read("community_reports", WHOLE)["rank"].to_pylist()
    assert [float(row[2]) for row in rows(shown["preview of community_reports"])] == sorted(ranks, reverse=True)[:10]
    whole = shown["reports of the highest rank, in full"]
    assert whole.count("\n---\n") + 1 == min(10, len(ranks)) and whole.startswith("# ") and "[Data:" not in whole


def test_a_bucket_links_to_its_text_units_and_counts_them_by_document(root: Root) -> None:
    for bucket in ("000", "001"):
        link = page(root, "documents", bucket)["text units of these documents"]
        assert link.endswith(f"](/assets/text_units?view=partitions&partition={bucket})")
        counts = rows(page(root, "text_units", bucket)["text units by document"])
        assert sum(int(row[2]) for row in counts) == root.tables.read("text_units", bucket).num_rows


def test_files_of_a_partition_exist(root: Root) -> None:
    shown = page(root, "graph")
    files = [value for name, value in shown.items() if name.startswith("file of")]
    assert len(files) == len(STAGES["graph"].tables) and all(Path(file).exists() for file in files)


def test_plots_are_pictures_of_how_many(root: Root) -> None:
    found = re.search(r"svg\+xml;base64,([^)]*)\)", page(root, "graph")["plot of entities by relationships"])
    assert found and len(list(ET.fromstring(base64.b64decode(found[1]).decode()).iter(f"{_SVG}rect"))) > 2


def test_a_file_of_a_shared_store_is_shown_by_its_address(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    root = make_root(tmp_path / "root", settings=f"storage: {{n_buckets: 1, url: 'file://{store}'}}\n")
    run_index(root)
    shown = describe_contents(StageContents(root, ALL_STAGES["graph"], "all"))
    address = str(shown["file of entities in the shared store"].value)
    assert Path(address.removeprefix("file://")).parent == store / "tables" / "entities" / "all"
    assert Path(address.removeprefix("file://")).is_file()
    snapshot = of_snapshot(root, str(root.snapshots.current()))
    assert Path(str(snapshot["file of the snapshot"].value)).is_file()
    assert Path(str(snapshot["file of the snapshot in the shared store"].value).removeprefix("file://")).is_file()
