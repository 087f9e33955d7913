"""The pictures of Dagster's UI and of the explorer in the documentation.

Run `python -m graphrag_pipeline_tests.support.documentation.ui_pictures`.
Look at them before you commit them. The sample corpus is indexed in a new root, so its own folder does not change.
Needs Debian's `chromium` and `chromium-driver`, and Pillow.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import yaml

from graphrag_pipeline.pipeline.root import Root, init_root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.settings.file import set_options
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.command_line import run
from graphrag_pipeline_tests.support.dagster.live_browser import click, running_chromium, show, wait_for_text
from graphrag_pipeline_tests.support.dagster.live_dagster import launch_job, running_dagster, wait_for_run
from graphrag_pipeline_tests.support.models.model_roots import KEY, KEY_VARIABLE, make_model_root
from graphrag_pipeline_tests.support.paths import REPOSITORY, SAMPLE_ROOT
from graphrag_pipeline_tests.support.serving import running_server

if TYPE_CHECKING:
    from PIL.Image import Image

SAMPLE = SAMPLE_ROOT
PICTURES = REPOSITORY / "docs" / "pictures"
_WIDTH = 1200
_COLORS = 128
_MAX_BYTES = 120_000
_MARGIN = 12
_SETTLE_S = 4  # until the layout of a graph is stable
_BOX_OF_GRAPH = """
    const boxes = [...document.querySelectorAll('foreignObject')].map(node => node.getBoundingClientRect())
        .filter(box => box.width > 0);
    return [Math.min(...boxes.map(box => box.left)), Math.min(...boxes.map(box => box.top)),
            Math.max(...boxes.map(box => box.right)), Math.max(...boxes.map(box => box.bottom))];"""


def main() -> int:
    """Take all pictures; 1 if one is too large for a page."""
    with tempfile.TemporaryDirectory() as folder:
        root = index_sample(Path(folder) / "root")
        with running_chromium(1400, 900) as browser:
            pictures = picture_explorer(browser, root.path)
        with running_dagster(root) as server, running_chromium(1500, 2100) as browser:
            pictures["asset_graph.png"] = picture_asset_graph(browser, server)
            pictures["bucket.png"] = picture_bucket(browser, server, root)
            pictures["stale_report.png"] = picture_stale_report(browser, server, root)
        set_schedule(root)
        with running_dagster(root) as server, running_chromium(1280, 760) as browser:
            pictures["automation.png"] = picture_automation(browser, server)
        pictures["costs.png"] = picture_costs(Path(folder) / "paid")
    PICTURES.mkdir(exist_ok=True)
    sizes = {name: save(picture, PICTURES / name) for name, picture in pictures.items()}
    for name, n_bytes in sizes.items():
        print(f"{name}: {n_bytes:,} bytes")
    return int(max(sizes.values()) > _MAX_BYTES)


def index_sample(path: Path, n_buckets: int = 8) -> Root:
    """The sample corpus, indexed in a separate root."""
    from graphrag_pipeline.defs.index_runs.index_run import run_index

    run_index(new_sample(path, n_buckets))
    return Root(path)


def new_sample(path: Path, n_buckets: int = 8) -> Root:
    """The sample corpus in a separate root, without an index."""
    shutil.copytree(SAMPLE / "input", path / "input")
    settings = (SAMPLE / "settings.yaml").read_text(encoding="utf-8")
    settings = set_options(settings, {("storage", "n_buckets"): n_buckets})
    (path / "settings.yaml").write_text(settings, encoding="utf-8")
    init_root(path)
    return Root(path)


def picture_explorer(browser: Any, root: Path) -> dict[str, Image]:
    """Pictures by name: an answer beside its source, and the graph."""
    with running_server({"sample": root}) as running:
        show(browser, f"{running.url}/#/ask?q=Who%20is%20Ebenezer%20Scrooge%27s%20clerk%3F", "local search", "Ask next")
        click(browser, "(//button[@class='citation'])[1]")
        wait_for_text(browser, "Source 1", "Open the whole document")
        time.sleep(_SETTLE_S)
        answer = picture_of(browser)
        browser.get("about:blank")
        show(browser, f"{running.url}/#/graph", "Shown", "with most relationships")
        time.sleep(_SETTLE_S)
        return {"explorer_answer.png": answer, "explorer_graph.png": picture_of(browser)}


def picture_asset_graph(browser: Any, server: str) -> Image:
    """All assets above the published snapshot, by group, from top to bottom."""
    show(browser, f"{server}/jobs", "reindex_stale")
    browser.execute_script("localStorage.setItem('asset-graph-direction', JSON.stringify('vertical'))")
    page = f"{server}/assets/index_snapshot?view=lineage&lineageScope=upstream&lineageDepth=20"
    show(browser, page, "index_candidate", "corpus_manifest")
    time.sleep(_SETTLE_S)
    left, top, right, bottom = browser.execute_script(_BOX_OF_GRAPH)
    box = (int(left) - _MARGIN, int(top) - _MARGIN, int(right) + _MARGIN, int(bottom) + _MARGIN)
    return picture_of(browser).crop(box)


def picture_bucket(browser: Any, server: str, root: Root) -> Image:
    """The page of one bucket's text units."""
    buckets = STAGES["text_units"].partitions(root.settings)
    bucket = max(buckets, key=lambda key: root.tables.need("text_units", key).n_rows)
    browser.set_window_size(1280, 740)
    show(browser, f"{server}/assets/text_units?view=partitions&partition={bucket}", "preview of text_units")
    click(browser, "//*[text()='Hide navigation']")
    time.sleep(1)
    return picture_of(browser)


def picture_stale_report(browser: Any, server: str, root: Root) -> Image:
    """Take the table of `stale_report` after an edited document and a changed setting."""
    with (root.path / "input" / "stave_5.txt").open("a", encoding="utf-8") as file:
        file.write("\nAnd so, as Tiny Tim observed, God bless Us, Every One!\n")
    settings = root.path / "settings.yaml"
    text = set_options(settings.read_text(encoding="utf-8"), {("reports", "max_input_tokens"): 5000})
    settings.write_text(text, encoding="utf-8")
    run_id = launch_job(server, "stale_report")
    assert wait_for_run(server, run_id) == "SUCCESS"
    browser.set_window_size(1280, 1000)
    show(browser, f"{server}/runs/{run_id}?selection=report_stale", "STEP_OUTPUT")
    click(browser, "(//*[contains(text(), 'Show Markdown')])[1]")
    wait_for_text(browser, "max_input_tokens: 8000 -> 5000")
    time.sleep(1)
    return as_picture(browser.find_element("css selector", "[role=dialog], .bp5-dialog, .bp4-dialog").screenshot_as_png)


def set_schedule(root: Root) -> None:
    """Switch on the sensor of the input folder and the nightly schedule, as the tutorial does."""
    settings = root.path / "settings.yaml"
    values = yaml.safe_load(settings.read_text(encoding="utf-8"))
    values["schedule"] = {**(values.get("schedule") or {}), "watch_input": True, "run_cron": True, "cron": "0 3 * * *"}
    settings.write_text(yaml.safe_dump(values), encoding="utf-8")


def picture_automation(browser: Any, server: str) -> Image:
    """Sensors and the schedule, with their switches."""
    show(browser, f"{server}/automation", "input_folder_sensor", "reindex_schedule")
    time.sleep(_SETTLE_S)
    return picture_of(browser)


def picture_costs(path: Path) -> Image:
    """Costs of an index, a question and a trial by the test model, whose prices are those of a small model."""
    chat, vectors = {"prompt_price": 0.15, "completion_price": 0.6}, {"prompt_price": 0.02}
    with patch.dict(os.environ, {KEY_VARIABLE: KEY}), running_model_server() as model:
        root = make_model_root(
            path, model.base_url, 6, chat_model=chat, embedding_model=vectors, budget={"max_cost": 2.0}
        )
        for words in (("index",), ("query", "Who was trusted?"), ("try", "extracted_graph", "--sample", "2")):
            result = run(*words, "--root", root.path)
            assert result.returncode == 0, result.stderr
            if words == ("index",):
                prompt = root.path / "prompts" / "extract_graph.txt"
                prompt.write_text(f"Name nobody twice.\n{prompt.read_text(encoding='utf-8')}", encoding="utf-8")
        with running_dagster(root) as server, running_chromium(1600, 1500) as browser:
            assert wait_for_run(server, launch_job(server, "observe_sources")) == "SUCCESS"
            show(browser, f"{server}/assets/costs", "last paid runs")
            click(browser, "//*[text()='Hide navigation']")
            time.sleep(_SETTLE_S)
            return picture_of(browser)


def picture_of(browser: Any) -> Image:
    return as_picture(browser.get_screenshot_as_png())


def as_picture(png: bytes) -> Image:
    from PIL import Image

    return Image.open(io.BytesIO(png)).convert("RGB")


def save(picture: Image, path: Path) -> int:
    """Shrink to the width of a page and few colours; returns the size of the file."""
    from PIL import Image

    if picture.width > _WIDTH:
        picture = picture.resize((_WIDTH, round(picture.height * _WIDTH / picture.width)), Image.Resampling.LANCZOS)
    few = picture.quantize(_COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    return path.stat().st_size


if __name__ == "__main__":
    sys.exit(main())
