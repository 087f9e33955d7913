"""A live Dagster UI in headless Chromium: the asset graph, a bucket's page, a backfill, a query job, reports.

Run with `make test-ui`; needs Debian's `chromium` and `chromium-driver`. Screenshots are left in the folder that
GRAPHRAG_SCREENSHOTS names, if it is set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.identity import bucket_keys
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, GROUPS
from graphrag_pipeline.pipeline.staleness import find_stale
from graphrag_pipeline_tests.support.command_line import run
from graphrag_pipeline_tests.support.dagster.live_browser import click, keep, running_chromium, show, wait_for_text
from graphrag_pipeline_tests.support.dagster.live_dagster import (
    graphql,
    latest_backfill,
    launch_job,
    running_dagster,
    wait_for_run,
    wait_until,
)
from graphrag_pipeline_tests.support.documentation.ui_pictures import index_sample
from graphrag_pipeline_tests.support.roots import put

pytestmark = [pytest.mark.ui, pytest.mark.timeout(600)]
N_BUCKETS = 3
PARTITIONS = "?view=partitions&partition="


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    return index_sample(Path(tmp_path_factory.mktemp("ui") / "root"), N_BUCKETS)


@pytest.fixture(scope="module")
def server(root: Root) -> Iterator[str]:
    with running_dagster(root) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_chromium() as driver:
        yield driver


def test_the_link_that_dev_prints_shows_every_asset(browser: Any, server: str, root: Root) -> None:
    [link] = re.findall(r"http://\S+/asset-groups\S+", (root.path / "dev.log").read_text(encoding="utf-8"))
    show(browser, link, *GROUPS, "corpus_manifest", "community_reports", "report_embeddings", "index_snapshot", "costs")
    keep(browser, "lineage")


def test_an_asset_page_shows_rows_schema_owner_and_plot(browser: Any, server: str) -> None:
    show(
        browser,
        f"{server}/assets/communities",
        "Row count",
        "entity_ids",
        "graphrag",
        "plot of community sizes at level 0",
    )
    picture = wait_until(lambda: browser.find_elements("css selector", "img[src^='data:image/svg+xml']"), 30)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", picture[0])
    wait_until(lambda: browser.execute_script("return arguments[0].naturalWidth > 0", picture[0]), 30)
    keep(browser, "communities")


def test_the_whole_graph_leads_to_the_published_snapshot(browser: Any, server: str) -> None:
    page = f"{server}/assets/index_snapshot?view=lineage&lineageScope=upstream&lineageDepth=20"
    show(browser, page, "input_folder", "entity_overrides", "corpus_manifest", "communities", "index_candidate")
    keep(browser, "upstream")


def test_the_published_snapshot_shows_its_documents(browser: Any, server: str, root: Root) -> None:
    show(browser, f"{server}/assets/index_snapshot", "documents in it", "stave_1.txt", str(root.snapshots.current()))
    keep(browser, "snapshot")


def test_a_buckets_page_shows_its_rows(browser: Any, server: str) -> None:
    text = show(browser, f"{server}/assets/text_units{PARTITIONS}001", "002", "dagster/partition_row_count", "tokens")
    assert f"Materialized ({N_BUCKETS})" in text and "Failed (0)" in text
    keep(browser, "bucket")


def test_the_page_of_a_partitioned_asset_shows_the_totals_of_all_buckets(browser: Any, server: str, root: Root) -> None:
    total = root.snapshots.open().n_rows("text_units")
    page = f"{server}/assets/text_units"
    show(browser, page, f"Row count\n{total:,}", "dagster/partition_row_count", "tokens of text units in all buckets")
    keep(browser, "totals")


def test_the_definitions_know_their_versions(server: str) -> None:
    data = graphql(server, "{ assetNodes { opName isPartitioned staleStatus assetKey { path } } }")
    nodes = {node["assetKey"]["path"][0]: node for node in data["assetNodes"]}
    assert nodes["text_units"]["isPartitioned"]
    assert not nodes["graph"]["isPartitioned"]
    assert {nodes[name]["staleStatus"] for name in ("graph", "communities", "index_snapshot")} == {"FRESH"}


def test_a_query_job_runs_from_the_launchpad_and_shows_its_answer(browser: Any, server: str) -> None:
    location = "graphrag_pipeline.definitions"
    show(browser, f"{server}/locations/{location}/jobs/local_search_job/playground", "Launch Run", "with_options")
    keep(browser, "launchpad")
    click(browser, "//button[contains(., 'Launch Run') and not(@disabled)]")
    query = '{ runsOrError(filter: {pipelineName: "local_search_job"}) { ... on Runs { results { runId } } } }'
    run_id = wait_until(lambda: graphql(server, query)["runsOrError"]["results"], 60)[0]["runId"]
    assert wait_for_run(server, run_id) == "SUCCESS"
    show(browser, f"{server}/runs/{run_id}?selection=answer_question", "STEP_OUTPUT")
    click(browser, "//*[contains(text(), 'Show Markdown')]")
    wait_for_text(browser, "Extractive answer")
    keep(browser, "answer")


def test_an_edited_document_makes_its_bucket_unsynced_until_a_backfill_from_the_ui(
    browser: Any, server: str, root: Root
) -> None:
    put(root.path, "preface.txt", "They say that Scrooge told Bob Cratchit of the Fog Society.")
    [bucket] = {item.partition for item in find_stale(root, detect_input(root)) if item.stage == "documents"}
    assert wait_for_run(server, launch_job(server, "observe_sources")) == "SUCCESS"
    assert unsynced(server) == {("corpus_manifest", bucket)}
    show(browser, f"{server}/assets/corpus_manifest{PARTITIONS}{bucket}", "Unsynced (1)")
    keep(browser, "unsynced")

    show(browser, f"{server}/locations/graphrag_pipeline.definitions/jobs/index_bucket", "Materialize all")
    click(browser, "//button[contains(., 'Materialize all')]")
    wait_for_text(browser, "Launch runs to materialize", "Failed and missing")
    click(browser, "//button[.='All']")
    click(browser, "//button[contains(., 'Launch backfill') and not(@disabled)]")
    backfill = wait_until(lambda: latest_backfill(server), 30)["id"]
    answered = 0
    while "COMPLETED" not in latest_backfill(server)["status"]:
        result = run("query", "Who is Scrooge's clerk?", "--root", root.path)
        assert result.returncode == 0 and "preface" not in result.stdout, result.stderr
        answered += 1
    assert answered
    show(browser, f"{server}/runs/b/{backfill}", f"{N_BUCKETS} partitions", "Succeeded", "100% completed")
    keep(browser, "backfill")
    assert unsynced(server) == set()
    text = show(browser, f"{server}/assets/corpus_manifest{PARTITIONS}{bucket}", "preview of corpus_manifest")
    assert "Unsynced" not in text

    assert wait_for_run(server, launch_job(server, "graph_and_later")) == "SUCCESS"
    show(browser, f"{server}/assets/index_snapshot", "documents added", "preface.txt")
    keep(browser, "published")
    assert find_stale(root, detect_input(root)) == []


def unsynced(server: str) -> set[tuple[str, str]]:
    """(asset, bucket) that the UI tags as not up to date."""
    query = """query($keys: [AssetKeyInput!], $partition: String!) { assetNodes(assetKeys: $keys) {
        assetKey { path } staleStatus(partition: $partition) } }"""
    keys = [{"path": [stage.name]} for stage in ALL_STAGES.values() if stage.is_partitioned]
    found = set()
    for bucket in bucket_keys(N_BUCKETS):
        for node in graphql(server, query, keys=keys, partition=bucket)["assetNodes"]:
            if node["staleStatus"] != "FRESH":
                found.add((node["assetKey"]["path"][0], bucket))
    return found
