"""Three workflows of a user in headless Chromium, each from an empty root: index all, follow a folder, change a prompt.

Daemon, webserver, code server and the model behind HTTP are real processes. Run with `make test-ui`; needs Debian's
`chromium` and `chromium-driver`. How long the first takes is a figure of the bench `ui`, not a limit here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.staleness import find_stale
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.command_line import run
from graphrag_pipeline_tests.support.dagster.live_browser import (
    click,
    keep,
    materialize_all,
    running_chromium,
    show,
    switch,
    wait_for_text,
)
from graphrag_pipeline_tests.support.dagster.live_dagster import (
    LOCATION,
    graphql,
    running_dagster,
    wait_for_backfill,
    wait_until,
)
from graphrag_pipeline_tests.support.documentation.ui_pictures import new_sample
from graphrag_pipeline_tests.support.models.model_roots import KEY, KEY_VARIABLE, make_model_root
from graphrag_pipeline_tests.support.roots import make_root, put

pytestmark = [pytest.mark.ui, pytest.mark.timeout(900)]
PATIENCE_S = 240
EACH_MINUTE = """
storage: {n_buckets: 2}
schedule: {watch_interval_s: 5, cron: "* * * * *"}
"""
PROMPT, STAGE = "extract_graph", "extracted_graph"
SENTENCE = "Name nobody twice."


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_chromium() as driver:
        yield driver


def test_three_clicks_in_the_asset_graph_index_an_empty_root(browser: Any, tmp_path: Path) -> None:
    root = new_sample(tmp_path / "root", n_buckets=2)
    assert root.snapshots.current() is None
    with running_dagster(root) as server:
        assert materialize_all(browser, server) <= 3
        assert wait_for_backfill(server) == "COMPLETED_SUCCESS"
        show(browser, f"{server}/assets/index_snapshot", "documents in it", "stave_1.txt", "stave_5.txt")
        keep(browser, "indexed_by_three_clicks")
        assert unsynced(server) == set()
    assert find_stale(root, detect_input(root)) == []
    assert "Bob Cratchit" in run("query", "Who is Ebenezer Scrooge's clerk?", "--root", root.path).stdout


def test_sensor_and_schedule_switched_on_in_the_ui_follow_the_folder(browser: Any, tmp_path: Path) -> None:
    root = make_root(tmp_path / "root", settings=EACH_MINUTE)
    with running_dagster(root) as server:
        sensor = f"{server}/locations/{LOCATION}/sensors/input_folder_sensor"
        switch(browser, sensor, is_on=True)
        wait_until(lambda: len(texts(root)) == 3, PATIENCE_S)
        for n_runs, text in enumerate(("They say that Scrooge saw the yellow fog.", "Scrooge saw the cold rain."), 2):
            put(root.path, "four.txt", text)
            wait_until(partial(is_indexed, root, "four.txt", text), PATIENCE_S)
            assert len(requested(server)) == n_runs
        show(browser, f"{server}/runs", "reindex_stale", "input_folder_sensor")
        keep(browser, "sensor")

        switch(browser, sensor, is_on=False)
        schedule = f"{server}/locations/{LOCATION}/schedules/reindex_schedule"
        switch(browser, schedule, is_on=True)
        (root.path / "input" / "four.txt").unlink()
        wait_until(lambda: "four.txt" not in texts(root), PATIENCE_S)
        show(browser, f"{server}/runs", "reindex_stale", "reindex_schedule")
        keep(browser, "schedule")
        switch(browser, schedule, is_on=False)
        wait_until(lambda: {status for _, status in requested(server)} == {"SUCCESS"}, PATIENCE_S)
    assert find_stale(root, detect_input(root)) == []


def test_a_changed_prompt_is_stale_everywhere_until_it_is_tried_and_backfilled(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with running_model_server() as model:
        root = make_model_root(tmp_path / "root", model.base_url, n_articles=4)
        with running_dagster(root, **{KEY_VARIABLE: KEY}) as server:
            materialize_all(browser, server)
            assert wait_for_backfill(server) == "COMPLETED_SUCCESS"
            see_fresh(browser, server)

            prompt = root.path / "prompts" / f"{PROMPT}.txt"
            prompt.write_text(f"{SENTENCE}\n{prompt.read_text(encoding='utf-8')}", encoding="utf-8")
            see_stale(browser, server)

            tried = run("try", STAGE, "--root", root.path)
            assert tried.returncode == 0 and SENTENCE in tried.stdout, tried.stdout + tried.stderr
            assert find_stale(Root(root.path), detect_input(root)), "a trial changes nothing"

            materialize_all(browser, server)
            assert wait_for_backfill(server) == "COMPLETED_SUCCESS"
            see_fresh(browser, server)
        assert find_stale(Root(root.path), detect_input(root)) == []


def see_stale(browser: Any, server: str) -> None:
    """See a changed prompt in the checks, the asset page, the catalog and the asset graph, without a click for it."""
    check = f"{server}/assets/{STAGE}?view=checks&checkDetail=up_to_date"
    show(browser, check, "stale.", f"prompt {PROMPT}", "2 of 2 buckets")
    click(browser, "//td[contains(., 'difference of')]/following-sibling::td//*[contains(text(), 'Show Markdown')]")
    wait_for_text(browser, f"+{SENTENCE}")
    keep(browser, "stale_difference")
    show(browser, f"{server}/assets/{STAGE}", "Latest check results")
    click(browser, "//*[@aria-label='warning_outline']")
    wait_for_text(browser, "up_to_date")
    keep(browser, "stale_asset")
    wait_until(lambda: "Code version" in show_catalog(browser, server), PATIENCE_S)
    keep(browser, "stale_catalog")
    see_in_graph(browser, server, "Unsynced (1)", "2 / 3 Passed", "1 / 2 Passed")
    keep(browser, "stale_graph")


def see_fresh(browser: Any, server: str) -> None:
    """See each asset as up to date in the checks, the catalog and the asset graph."""
    show(browser, f"{server}/assets/{STAGE}?view=checks&checkDetail=up_to_date", "Latest execution\nup to date")
    see_in_graph(browser, server, "3 / 3 Passed", "2 / 2 Passed")
    assert "Code version" not in show_catalog(browser, server)
    assert unsynced(server) == set()
    keep(browser, "fresh")


def show_catalog(browser: Any, server: str) -> str:
    """Return the text of the catalog, once it shows the status of each asset."""
    show(browser, f"{server}/assets", "Reload definitions", "index_snapshot", "Materialized")
    return str(
        wait_until(lambda: text if "Loading" not in (text := wait_for_text(browser, "Status")) else "", PATIENCE_S)
    )


def see_in_graph(browser: Any, server: str, *expected: str) -> None:
    """Open the neighbours of `extracted_graph` in the asset graph, and zoom in until the boxes have details."""
    show(browser, f"{server}/assets/{STAGE}?view=lineage", "index_candidate")
    for _ in range(3):
        click(browser, "//*[@aria-label='zoom_in']")
    wait_for_text(browser, *expected)


def texts(root: Root) -> dict[str, str]:
    """Documents of the published snapshot, by path; empty without one."""
    opened = Root(root.path)
    if not opened.snapshots.current():
        return {}
    return {row["path"]: row["text"] for row in opened.snapshots.open().table("documents").to_pylist()}


def is_indexed(root: Root, path: str, text: str) -> bool:
    return texts(root).get(path, "").strip() == text


def requested(server: str) -> list[tuple[str, str]]:
    """Id and status of the runs that sensor and schedule requested."""
    query = '{ runsOrError(filter: {pipelineName: "reindex_stale"}) { ... on Runs { results { runId status } } } }'
    return [(row["runId"], row["status"]) for row in graphql(server, query)["runsOrError"]["results"]]


def unsynced(server: str) -> set[str]:
    """Assets of the whole corpus that the UI tags as not up to date."""
    nodes = graphql(server, "{ assetNodes { staleStatus assetKey { path } } }")["assetNodes"]
    return {node["assetKey"]["path"][0] for node in nodes if node["staleStatus"] == "STALE"}
