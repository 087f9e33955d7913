"""A live Dagster UI in headless Chromium: the asset graph, a partitions page, a query job run from the Launchpad.

Run with `make test-ui`; needs Debian's `chromium` and `chromium-driver`. Screenshots are left in the folder that
GRAPHRAG_SCREENSHOTS names, if it is set.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.root import Root, init_root
from graphrag_pipeline_tests.live_dagster import graphql, running_dagster, wait_until

pytestmark = [pytest.mark.ui, pytest.mark.timeout(600)]
SAMPLE = Path(__file__).parents[1] / "data"
_CHROMIUM = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --window-size=1500,1100"
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    from graphrag_pipeline.defs.index_run import run_index

    path = tmp_path_factory.mktemp("ui") / "root"
    shutil.copytree(SAMPLE / "input", path / "input")
    shutil.copy(SAMPLE / "settings.yaml", path)
    init_root(path)
    run_index(Root(path))
    return Root(path)


@pytest.fixture(scope="module")
def server(root: Root) -> Iterator[str]:
    with running_dagster(root) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.fail("make test-ui needs Debian's packages: apt-get install chromium chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = str(shutil.which("chromium"))
    for argument in _CHROMIUM.split():
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield driver
    driver.quit()


def show(browser: Any, address: str, *expected: str) -> str:
    """Open a page and wait until it shows every expected text."""
    browser.get(address)
    return wait_for_text(browser, *expected)


def wait_for_text(browser: Any, *expected: str) -> str:
    from selenium.common.exceptions import StaleElementReferenceException

    text = ""

    def is_shown() -> bool:
        nonlocal text
        try:
            text = browser.find_element("tag name", "body").text
        except StaleElementReferenceException:
            return False
        return all(word in text for word in expected)

    try:
        wait_until(is_shown, 60)
    except TimeoutError:
        keep(browser, "failed")
        pytest.fail(f"the page never showed all of {expected}; it shows: {text[:2000]}")
    return text


def keep(browser: Any, name: str) -> None:
    if folder := os.environ.get("GRAPHRAG_SCREENSHOTS"):
        browser.save_screenshot(str(Path(folder) / f"{name}.png"))


def test_the_lineage_page_shows_every_group(browser: Any, server: str) -> None:
    show(browser, f"{server}/asset-groups", "documents", "graph", "communities", "embeddings", "publish")
    keep(browser, "lineage")


def test_an_asset_page_shows_rows_schema_owner_and_plot(browser: Any, server: str) -> None:
    show(browser, f"{server}/assets/communities", "Row count", "entity_ids", "graphrag", "sizes at level 0")
    picture = wait_until(lambda: browser.find_elements("css selector", "img[src^='data:image/svg+xml']"), 30)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", picture[0])
    wait_until(lambda: browser.execute_script("return arguments[0].naturalWidth > 0", picture[0]), 30)
    keep(browser, "communities")


def test_a_partitions_page_shows_every_bucket_materialized(browser: Any, server: str) -> None:
    text = show(browser, f"{server}/assets/text_units?view=partitions", "000", "007")
    assert "Materialized" in text
    keep(browser, "partitions")


def test_the_definitions_know_their_versions(server: str) -> None:
    data = graphql(server, "{ assetNodes { opName isPartitioned staleStatus assetKey { path } } }")
    nodes = {node["assetKey"]["path"][0]: node for node in data["assetNodes"]}
    assert nodes["text_units"]["isPartitioned"]
    assert not nodes["graph"]["isPartitioned"]
    assert {nodes[name]["staleStatus"] for name in ("graph", "communities", "index_snapshot")} == {"FRESH"}


def test_a_query_job_runs_from_the_launchpad_and_shows_its_answer(browser: Any, server: str) -> None:
    location = "graphrag_pipeline.definitions"
    show(browser, f"{server}/locations/{location}/jobs/local_search_job/playground", "Launch Run", "question")
    button = wait_until(
        lambda: browser.find_elements("xpath", "//button[contains(., 'Launch Run') and not(@disabled)]"), 60
    )
    button[0].click()
    query = '{ runsOrError(filter: {pipelineName: "local_search_job"}) { ... on Runs { results { runId status } } } }'

    def finished() -> str | None:
        runs = graphql(server, query)["runsOrError"]["results"]
        return runs[0]["runId"] if runs and runs[0]["status"] in ("SUCCESS", "FAILURE") else None

    run_id = wait_until(finished, 120)
    assert graphql(server, query)["runsOrError"]["results"][0]["status"] == "SUCCESS"
    show(browser, f"{server}/runs/{run_id}?selection=answer_question", "STEP_OUTPUT")
    browser.find_elements("xpath", "//*[contains(text(), 'Show Markdown')]")[-1].click()
    wait_for_text(browser, "Extractive answer")
    keep(browser, "answer")
