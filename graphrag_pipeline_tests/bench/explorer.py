"""The explorer in headless Chromium over an index of 100,000 entities: first page, and graph at community level.

The server runs in this process. Times are medians from the start of the
navigation, by the browser's clock: until the form of the first page is in the page, and until the picture of the graph
was given to the graphics processor. Headless Chromium draws without one, so what follows is not measured. Keep out:
what the pages show (`serve/explorer/test_explorer.py` of the tests).
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from graphrag_pipeline_tests.bench.measuring import Figure
from graphrag_pipeline_tests.support.dagster.live_browser import running_chromium
from graphrag_pipeline_tests.support.dagster.live_dagster import wait_until
from graphrag_pipeline_tests.support.serving import running_server

N_VISITS = 5
PATIENCE_S = 60
FIRST_PAGE_S = 1.0
GRAPH_S = 2.0
_WATCH = """
    window.shownAt = {};
    const marks = ['form.composer', '.canvas[data-drawn]'];
    new MutationObserver(() => marks.forEach((mark) => {
        if (!(mark in window.shownAt) && document.querySelector(mark)) window.shownAt[mark] = performance.now();
    })).observe(document, { childList: true, subtree: true, attributes: true });"""


def measure_explorer(root: Path) -> list[Figure]:
    """Return the figures of a large index."""
    with running_server({"large": root}) as running, running_chromium(1400, 1000) as browser:
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _WATCH})
        pages = {"#/ask": "form.composer", "#/graph": ".canvas[data-drawn]"}
        page, graph = (_median(browser, f"{running.url}/{address}", mark) for address, mark in pages.items())
    return [
        Figure("explorer, 100,000 entities: first page", page, "s", FIRST_PAGE_S),
        Figure("the same: graph at community level", graph, "s", GRAPH_S),
    ]


def _median(browser: Any, address: str, mark: str) -> float:
    """Return the seconds until a page shows `mark`, the median of some visits."""
    found = []
    for _ in range(N_VISITS):
        browser.get("about:blank")
        browser.get(address)
        shown = wait_until(lambda: browser.execute_script("return window.shownAt[arguments[0]]", mark), PATIENCE_S)
        found.append(shown / 1000)
    return statistics.median(found)
