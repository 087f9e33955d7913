"""The watch of `dev`: what reloads the definitions, what does not, and what the UI shows then."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import dagster as dg
import pytest

from graphrag_pipeline.defs.dev import DefinitionsWatch, reload_definitions, report_known_state
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.support.roots import indexed_root, make_root


class Watched:
    """A root with a watch that counts reloads and keeps what it says."""

    def __init__(self, root: Root) -> None:
        self.root, self.n_reloads, self.said = root, 0, list[str]()
        self.is_away = False
        self.watch = DefinitionsWatch(root.path, self.reload, self.said.append)

    def reload(self) -> None:
        if self.is_away:
            raise ConnectionRefusedError
        self.n_reloads += 1

    def look(self) -> int:
        """Look twice, because a file must be the same at two looks; return the reloads so far."""
        self.watch.look()
        self.watch.look()
        return self.n_reloads

    def write(self, name: str, text: str) -> None:
        (self.root.path / name).write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.root.path / name).read_text(encoding="utf-8")


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(make_root(tmp_path / "root", settings="extraction: {engine: model}\nchat_model: {model: any}\n"))


PROMPT = "prompts/extract_graph.txt"


def test_a_changed_prompt_or_setting_reloads_once_and_is_named(watched: Watched) -> None:
    assert watched.look() == 0
    watched.write(PROMPT, f"Name nobody twice.\n{watched.read(PROMPT)}")
    assert watched.look() == watched.look() == 1
    assert watched.said == [f"{PROMPT} changed: loading the definitions again"]
    watched.write("settings.yaml", f"{watched.read('settings.yaml')}schedule: {{cron: '0 4 * * *'}}\n")
    assert watched.look() == 2


def test_a_file_that_is_still_written_waits(watched: Watched) -> None:
    text = watched.read(PROMPT)
    for number in range(3):
        watched.write(PROMPT, f"{'Again. ' * number}{text}")
        watched.watch.look()
    assert watched.n_reloads == 0
    assert watched.look() == 1


def test_a_comment_after_the_first_change_reloads_nothing(watched: Watched) -> None:
    watched.write(PROMPT, f"Name nobody twice.\n{watched.read(PROMPT)}")
    assert watched.look() == 1
    watched.write("settings.yaml", f"# as agreed\n{watched.read('settings.yaml')}")
    assert watched.look() == 1 and len(watched.said) == 1


def test_settings_that_cannot_be_used_keep_the_definitions_until_they_are_corrected(watched: Watched) -> None:
    good = watched.read("settings.yaml")
    assert watched.root.settings.storage.n_buckets != 5
    watched.write("settings.yaml", "extraktion: {}\n")
    assert watched.look() == watched.look() == 0
    [line] = watched.said
    assert "extraktion" in line and "keeps the definitions from before" in line
    watched.write("settings.yaml", f"{good}storage: {{n_buckets: 5}}\n")
    watched.root.tables.check_layout(watched.root.settings.storage.n_buckets)
    assert watched.look() == 0 and "n_buckets" in watched.said[1]
    watched.write("settings.yaml", good)
    assert watched.look() == 1


def test_until_the_first_change_nothing_heavy_is_imported() -> None:
    code = "import sys, graphrag_pipeline.defs.dev; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"dagster", "pyarrow", "pandas"} & set(modules)


def test_a_ui_that_does_not_answer_is_asked_again(watched: Watched) -> None:
    watched.is_away = True
    watched.write(PROMPT, f"Name nobody twice.\n{watched.read(PROMPT)}")
    with pytest.raises(OSError):
        watched.look()
    watched.is_away = False
    assert watched.look() == 1


@pytest.mark.thorough
def test_a_changed_setting_shows_on_the_checks_without_a_click(tmp_path: Path) -> None:
    root = indexed_root(tmp_path / "root")
    settings = root.path / "settings.yaml"
    settings.write_text(settings.read_text(encoding="utf-8") + "reports: {max_input_tokens: 4000}\n", encoding="utf-8")
    assert report_known_state(root.path) > 0
    key = dg.AssetCheckKey(dg.AssetKey("community_reports"), "up_to_date")
    with open_instance(root) as instance:
        record = instance.event_log_storage.get_latest_asset_check_execution_by_key([key])[key]
    evaluation = record.event.dagster_event.event_specific_data
    assert not evaluation.passed and "max_input_tokens" in str(evaluation.metadata)
    assert report_known_state(root.path) == 0, "an equal state is not reported again"


@contextmanager
def graphql_answering(reply: Any) -> Iterator[str]:
    """Port of a server that answers every request with a reply."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert body["variables"] == {"name": "place"}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(reply).encode())

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield str(server.server_port)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_definitions_that_do_not_load_are_an_error_with_its_words() -> None:
    loaded = {"data": {"reloadRepositoryLocation": {"locationOrLoadError": {}}}}
    with graphql_answering(loaded) as port:
        reload_definitions("0.0.0.0", port, "place")
    failed = {"data": {"reloadRepositoryLocation": {"locationOrLoadError": {"message": "no such\n  key"}}}}
    with graphql_answering(failed) as port, pytest.raises(PipelineError, match="cannot be loaded: no such key"):
        reload_definitions("127.0.0.1", port, "place")
    with pytest.raises(OSError):
        reload_definitions("127.0.0.1", port, "place")
