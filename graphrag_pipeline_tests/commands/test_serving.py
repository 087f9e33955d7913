"""The options of `serve` reach the limits of the server."""

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphrag_pipeline.cli import app
from graphrag_pipeline.commands import serving
from graphrag_pipeline.serve import app as server
from graphrag_pipeline.serve.limits import ServerLimits


def test_each_limit_has_the_value_of_its_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = list[ServerLimits]()
    monkeypatch.setattr(server, "build_app", lambda served, **options: given.append(options["limits"]))
    monkeypatch.setattr(serving, "_listen", lambda *_: None)
    assert CliRunner().invoke(app, ["init", str(tmp_path)]).exit_code == 0
    options = ["--max-running", "3", "--max-waiting", "5", "--timeout", "7", "--max-body", "2000", "--drain", "9"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    result = CliRunner().invoke(app, ["--root", str(tmp_path), "serve", "--port", port, *options])
    assert result.exit_code == 0, result.output
    expected = ServerLimits(max_running=3, max_waiting=5, timeout_s=7, max_body_bytes=2000, drain_s=9, takes_turns=True)
    assert given == [expected]
