"""The pictures of the explorer in the documentation, of the indexed sample; `ui_pictures.py` saves them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from graphrag_pipeline_tests.support.dagster.live_browser import click, show, wait_for_text
from graphrag_pipeline_tests.support.serving import running_server

_SETTLE_S = 2  # until the camera of the graph rests


def picture_explorer(browser: Any, root: Path) -> dict[str, bytes]:
    """Return PNG files by name: an answer beside its source, and the graph with an open community."""
    with running_server({"sample": root}) as running:
        show(browser, f"{running.url}/#/ask?q=Who%20is%20Ebenezer%20Scrooge%27s%20clerk%3F", "local search", "Ask next")
        click(browser, "(//button[@class='citation'])[1]")
        wait_for_text(browser, "Source 1", "Open the whole document", "characters")
        time.sleep(_SETTLE_S)
        answer = browser.get_screenshot_as_png()
        browser.get("about:blank")
        show(browser, f"{running.url}/#/graph", "Shown", "communities")
        click(browser, "(//ul[contains(@class, 'listing')]//button)[1]")
        click(browser, "//button[contains(., 'Open the community')]")
        wait_for_text(browser, "parts of the community")
        time.sleep(_SETTLE_S)
        return {"explorer_answer.png": answer, "explorer_graph.png": browser.get_screenshot_as_png()}
