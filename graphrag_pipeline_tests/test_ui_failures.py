"""What a person reads in headless Chromium where they look first after a failure: what happened, and the way out.

A model that is down, a budget, a killed run, a bad file, mixed prompts, old definitions: each on a live Dagster with
the test model behind HTTP. Run with `make test-ui`; needs Debian's `chromium` and `chromium-driver`.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.defs.runs.live import WAY_ON
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.model_server import ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.dagster.live_browser import keep, running_chromium, show
from graphrag_pipeline_tests.support.dagster.live_dagster import (
    LOCATION,
    graphql,
    launch_job,
    running_dagster,
    wait_for_run,
    wait_until,
)
from graphrag_pipeline_tests.support.models.model_roots import KEY, KEY_VARIABLE, TEXT, make_model_root
from graphrag_pipeline_tests.support.roots import put

pytestmark = [pytest.mark.ui, pytest.mark.timeout(900)]
PATIENCE_S = 120
NO_MODEL = "http://127.0.0.1:9/v1"
_RELOAD = "mutation($name: String!) { reloadRepositoryLocation(repositoryLocationName: $name) { __typename } }"
_STOP = "mutation($id: String!) { terminateRun(runId: $id) { __typename } }"
_LOGS = """query($id: ID!) {
    logsForRun(runId: $id) { ... on EventConnection { events { ... on MessageEvent { message } } } } }"""


class Model:
    """The test model; `is_held` lets it wait in an extraction until it is released, for at most a minute."""

    def __init__(self) -> None:
        self.is_held = False
        self.is_asked, self.is_released = threading.Event(), threading.Event()

    def answer(self, request: ReceivedRequest) -> None:
        """Leave the reply to the default model."""
        if self.is_held and request.kind == "extraction":
            self.is_asked.set()
            self.is_released.wait(60)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Iterator[Root]:
    with running_model_server(model.answer) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_VARIABLE, KEY)
        yield make_model_root(tmp_path_factory.mktemp("failures") / "root", server.base_url, n_articles=4)


@pytest.fixture(scope="module")
def server(root: Root) -> Iterator[str]:
    with running_dagster(root, "--no-reload", **{KEY_VARIABLE: KEY}) as address:  # as a deployment with Dagster's own
        assert wait_for_run(address, launch_job(address, "reindex_stale")) == "SUCCESS"
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_chromium() as driver:
        yield driver


@pytest.fixture
def edit(root: Root) -> Iterator[Callable[[str, str, str], None]]:
    """Replace a text in a file of the root; the end of the test restores the file."""
    before: dict[Path, str] = {}

    def replace(name: str, old: str, new: str) -> None:
        path = root.path / name
        text = before.setdefault(path, path.read_text(encoding="utf-8"))
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    yield replace
    for path, text in before.items():
        path.write_text(text, encoding="utf-8")


def test_a_bad_file_is_named_on_its_check_with_the_remedy(browser: Any, server: str, root: Root) -> None:
    bad = root.path / "input" / "bad.pdf"
    bad.write_bytes(b"%PDF-1.7 but no more")
    assert wait_for_run(server, launch_job(server, "observe_sources")) == "SUCCESS"
    page = f"{server}/assets/corpus_manifest?view=checks&checkDetail=documents_readable"
    show(browser, page, "bad.pdf: damaged or not a pdf file", "open it and save it again")
    keep(browser, "bad_file")
    bad.unlink()


def test_old_definitions_are_refused_with_the_button_to_click(
    browser: Any, server: str, edit: Callable[[str, str, str], None]
) -> None:
    edit("prompts/extract_graph.txt", "You turn", "With care, you turn")
    run_id = fail(server, "index_bucket", partition="000")
    show(browser, f"{server}/runs/{run_id}", "changed since these definitions were loaded", "choose Reload definitions")
    keep(browser, "old_definitions")


def test_mixed_prompts_name_the_buckets_and_what_to_run(
    browser: Any, server: str, edit: Callable[[str, str, str], None]
) -> None:
    edit("prompts/extract_graph.txt", "You turn", "With great care, you turn")
    graphql(server, _RELOAD, name=LOCATION)
    assert wait_for_run(server, launch_job(server, "index_bucket", partition="000")) == "SUCCESS"
    run_id = fail(server, "graph_and_later")
    shown = show(browser, f"{server}/runs/{run_id}", "RUN_FAILURE", "its buckets come from 2 versions of")
    assert "materialize the other buckets, or run `graphrag-pipeline index`" in " ".join(shown.split())
    keep(browser, "mixed_prompts")
    assert wait_for_run(server, launch_job(server, "reindex_stale")) == "SUCCESS", "the way out"


def test_a_budget_that_is_used_up_names_its_setting(
    browser: Any, server: str, root: Root, edit: Callable[[str, str, str], None]
) -> None:
    edit("settings.yaml", "no limit.\n  max_tokens: null\n  # Maximum cost", "\n  max_tokens: 1\n  # Maximum cost")
    put(root.path, "budget.txt", TEXT)
    run_id = fail(server, "reindex_stale")
    shown = show(browser, f"{server}/runs/{run_id}", "RUN_FAILURE", "the budget does not suffice")
    assert "No call was made. Raise budget.max_tokens to" in " ".join(shown.split())
    keep(browser, "budget")


def test_a_killed_run_says_what_is_kept_and_how_to_go_on(browser: Any, server: str, root: Root, model: Model) -> None:
    put(root.path, "killed.txt", TEXT.replace("London", "Paris"))
    model.is_held = True
    run_id = launch_job(server, "reindex_stale")
    wait_until(model.is_asked.is_set, PATIENCE_S)
    os.kill(pid_of(server, run_id), signal.SIGKILL)
    model.is_held = False
    model.is_released.set()
    assert wait_for_run(server, run_id) == "FAILURE"
    shown = show(browser, f"{server}/runs/{run_id}", "terminated by signal 9", WAY_ON[:40])
    assert WAY_ON in " ".join(shown.split())
    keep(browser, "killed")
    assert wait_for_run(server, launch_job(server, "reindex_stale")) == "SUCCESS", "the way out"


def test_a_model_that_is_down_is_named_while_the_run_still_tries(
    browser: Any, server: str, root: Root, edit: Callable[[str, str, str], None]
) -> None:
    edit("settings.yaml", root.settings.chat_model.base_url or "", NO_MODEL)
    put(root.path, "down.txt", TEXT.replace("London", "Rome"))
    run_id = launch_job(server, "reindex_stale")
    shown = show(browser, f"{server}/runs/{run_id}", "STEP_UP_FOR_RETRY", "cannot connect")
    assert "Start the server, or correct base_url" in " ".join(shown.split())
    keep(browser, "model_down")
    graphql(server, _STOP, id=run_id)
    assert wait_for_run(server, run_id) == "CANCELED"


def fail(server: str, job: str, partition: str | None = None) -> str:
    """Run a job that fails; return the id of its run."""
    run_id = launch_job(server, job, partition=partition)
    assert wait_for_run(server, run_id) == "FAILURE"
    return run_id


def pid_of(server: str, run_id: str) -> int:
    """Return the number of the process of a run, which a test started."""
    events = graphql(server, _LOGS, id=run_id)["logsForRun"]["events"]
    [pid, *_] = re.findall(r"\(pid: (\d+)\)", " ".join(event.get("message", "") for event in events))
    return int(pid)
