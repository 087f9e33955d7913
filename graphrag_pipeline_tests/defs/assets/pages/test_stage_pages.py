"""What the page of a partition shows: the highest records first, in words, with links, pictures and whole reports."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.defs.assets.pages import pictures
from graphrag_pipeline.defs.assets.pages.pictures import DrawnCommunity, draw_communities
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


@pytest.mark.parametrize("stage", ["graph", "communities"])
def test_the_picture_is_the_same_each_time_and_its_legend_names_the_entities(root: Root, stage: str) -> None:
    [markdown] = [value for name, value in page(root, stage).items() if name.startswith("picture")]
    assert markdown in page(root, stage).values()
    found = re.search(r"svg\+xml;base64,([^)]*)\)", markdown)
    assert found and len(found[1]) < 120_000
    drawn = ET.fromstring(base64.b64decode(found[1]).decode())
    assert len(list(drawn.iter(f"{_SVG}circle"))) > 2
    assert "EBENEZER SCROOGE" in markdown or "SCROOGE" in markdown


def test_names_in_any_script_and_a_lone_community_are_drawn() -> None:
    titles = ("\u5b54\u5b50", "$x^2$ & <b>", "A" * 90, "a\x00b\ud800")
    edges = [(titles[0], titles[1]), ("nobody", titles[2]), (titles[2], titles[0])]
    drawn = ET.fromstring(draw_communities([DrawnCommunity(titles, (3, 0, 1, 1))], edges))
    assert [text.text for text in drawn.iter(f"{_SVG}text")] == [
        *("\u5b54\u5b50", "$x^2$ & <b>", "A" * 21 + "\u2026", "a b ", "1")
    ]
    [path] = drawn.iter(f"{_SVG}path")
    assert path.attrib["d"].count("l") == 2, "a line for each pair of drawn titles"


def test_entities_lie_inside_the_picture_and_names_do_not_cover_each_other() -> None:
    communities = [
        DrawnCommunity(tuple(f"ENTITY {n} OF {c}" for n in range(24)), tuple(range(24, 0, -1))) for c in range(8)
    ]
    drawn = ET.fromstring(draw_communities(communities, []))
    for circle in drawn.iter(f"{_SVG}circle"):
        x, y, r = (float(circle.attrib[name]) for name in ("cx", "cy", "r"))
        assert r <= x <= 864 - r and r <= y <= 595 - r
    names = [text.text for text in drawn.iter(f"{_SVG}text")]
    assert {f"ENTITY 0 OF {c}" for c in range(8)} < set(names) and len(names) == len(set(names))


def test_only_the_heaviest_relationships_are_drawn(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "_MAX_EDGES", 2)
    markdown = page(root, "communities")["picture of the largest communities"]
    found = re.search(r"base64,([^)]*)\)", markdown)
    assert found
    [path] = ET.fromstring(base64.b64decode(found[1]).decode()).iter(f"{_SVG}path")
    assert path.attrib["d"].count("l") == 2
    assert re.search(r"The 2 heaviest of \d+ relationships are drawn\.", markdown)


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
