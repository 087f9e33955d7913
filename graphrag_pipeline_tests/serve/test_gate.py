"""The gate: heads and bodies that are endless, slow or many, compressed answers, and lines of the audit log."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.access.access_file import AuditRules
from graphrag_pipeline.access.audit import AuditLog
from graphrag_pipeline.serve import gate
from graphrag_pipeline.serve.gate import Audit
from graphrag_pipeline.serve.limits import MAX_BODY_MARKS, MAX_HEADER_BYTES, MAX_UNREAD_HEADS, ServerLimits
from graphrag_pipeline_tests.support.serving import RunningServer, running_server

HEAD = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n"
LEAST_BYTES = 20_000_000


def connect(server: RunningServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


def is_closed(connection: socket.socket) -> bool:
    """Whether the server ends the connection within its time-out; an answer before that is read."""
    try:
        while connection.recv(65_536):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize(
    "begun",
    [
        HEAD + b"x-a: ",
        b"GET /",
        HEAD + b"\r\n" + HEAD + b"x-a: ",
        b"POST /search HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-a: ",
        b"POST /search HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n1;",
    ],
    ids=["header", "target", "second request", "trailer", "chunk extension"],
)
def test_an_endless_line_is_cut(server: RunningServer, begun: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(begun)
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < LEAST_BYTES:
                connection.sendall(b"a" * 65_536)
                sent += 65_536
        assert sent < LEAST_BYTES and is_closed(connection)


def test_headers_up_to_the_limit_are_read(server: RunningServer) -> None:
    with connect(server) as connection:
        for _ in range(3):  # the limit is of one request, not of a connection
            connection.sendall(HEAD + b"x-a: " + b"a" * (MAX_HEADER_BYTES - 500) + b"\r\n\r\n")
            assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
        connection.sendall(HEAD + b"x-a: " + b"a" * MAX_HEADER_BYTES + b"\r\n\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize("begun", [b"", HEAD, HEAD + b"\r\n"], ids=["nothing", "head", "after an answer"])
def test_a_slow_head_is_closed(server: RunningServer, begun: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "MAX_HEAD_S", 0.5)
    with connect(server) as connection:
        connection.sendall(begun)
        deadline = time.monotonic() + 15
        with contextlib.suppress(ConnectionError):
            for byte in itertools.cycle(b"\r\n" if begun.endswith(b"\r\n\r\n") else b"x"):
                connection.sendall(bytes([byte]))  # each byte resets a time-out of silence
                assert time.monotonic() < deadline
                time.sleep(0.05)
        assert is_closed(connection)


def test_many_unread_heads_leave_room_for_others(server: RunningServer) -> None:
    with contextlib.ExitStack() as opened:
        first = opened.enter_context(connect(server))
        first.sendall(HEAD)
        for _ in range(MAX_UNREAD_HEADS):
            opened.enter_context(connect(server)).sendall(HEAD)
        assert server.client.get("/health").status_code == 200
        assert is_closed(first), "the oldest goes first"


POST_HEAD = "POST /search HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"


def converse(server: RunningServer, *parts: bytes) -> tuple[int, dict[str, str]]:
    """Send the parts, then read the answer to its end: a client that writes everything before it reads."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        for part in parts:
            connection.sendall(part)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]


def test_a_client_that_sends_too_much_reads_why(server: RunningServer) -> None:
    chunked = (POST_HEAD + "connection: close\r\ntransfer-encoding: chunked\r\n\r\n").encode()
    chunk = b"30D40\r\n" + b" " * 200_000 + b"\r\n"
    announced = (POST_HEAD + "connection: close\r\ncontent-length: 8000000\r\n\r\n").encode()
    for parts in ((chunked, *(chunk,) * 40, b"0\r\n\r\n"), (announced, b" " * 8_000_000)):
        status, error = converse(server, *parts)
        assert (status, error["code"]) == (413, "too_large")


@pytest.mark.parametrize("path", ["/search", "/v1/chat/completions", "/mcp"])
@pytest.mark.parametrize("unit", [b"1,", b"[", b'{"a":', b"{},"])
def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(
    server: RunningServer, path: str, unit: bytes
) -> None:
    content = b'{"question":[' + unit * MAX_BODY_MARKS
    answer = server.client.post(path, content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 400 and f"{MAX_BODY_MARKS:,} commas" in answer.json()["error"]["message"]


def test_a_body_that_does_not_arrive_ends_with_408(served_root: Path) -> None:
    with running_server({"carol": served_root}, limits=ServerLimits(max_body_s=0.2)) as server:
        head = (POST_HEAD + "connection: close\r\ncontent-length: 100\r\n\r\n").encode()
        status, error = converse(server, head, b'{"question": ')
        assert (status, error["code"]) == (408, "too_slow") and error["what_to_do"]
        body = {"question": "Who is Belle?", "method": "basic", "context_only": True}
        assert server.client.post("/search", json=body).status_code == 200, "work after the body has its own limit"


def ask(server: RunningServer, target: str, accepted: str = "", body: str = "") -> tuple[dict[str, str], bytes]:
    """Return the headers and the body of an answer as they are on the wire."""
    head = f"{'POST' if body else 'GET'} {target} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n"
    head += f"accept-encoding: {accepted}\r\n" if accepted else ""
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n" if body else ""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(f"{head}\r\n{body}".encode())
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    first, _, content = answer.partition(b"\r\n\r\n")
    lines = (line.partition(": ") for line in first.decode().lower().split("\r\n")[1:])
    return {name: value for name, _, value in lines}, content


@pytest.mark.parametrize("accepted", ["gzip", "br, gzip;q=0.5", "GZIP", "*"])
def test_a_long_answer_is_compressed_for_those_who_ask(server: RunningServer, accepted: str) -> None:
    plain_headers, plain = ask(server, "/entities?limit=50")
    headers, packed = ask(server, "/entities?limit=50", accepted)
    assert "content-encoding" not in plain_headers and headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed) == plain and len(packed) < len(plain) / 2
    assert int(headers["content-length"]) == len(packed) and headers["vary"] == "accept-encoding"


@pytest.mark.parametrize("accepted", ["", "br", "gzip;q=0", "gzip;q=0.0, br", "xgzip", "identity"])
def test_others_get_it_plain(server: RunningServer, accepted: str) -> None:
    headers, content = ask(server, "/entities?limit=50", accepted)
    assert "content-encoding" not in headers and json.loads(content)["total"]


def test_short_answers_and_events_stay_plain(server: RunningServer) -> None:
    headers, content = ask(server, "/health", "gzip")
    assert "content-encoding" not in headers and json.loads(content) == {"status": "ok"}
    headers, content = ask(server, "/search/stream", "gzip", '{"question": "Who is Tiny Tim?"}')
    assert "content-encoding" not in headers and b"event: context" in content


def test_an_answer_of_a_search_is_the_same_compressed(server: RunningServer) -> None:
    body = '{"question": "Who is Tiny Tim?", "context_only": true}'
    _, plain = ask(server, "/search", "", body)
    _, packed = ask(server, "/search", "gzip", body)
    first, second = json.loads(plain), json.loads(gzip.decompress(packed))
    assert first | {"seconds": 0} == second | {"seconds": 0}


def call_tool(server: RunningServer, tool: str, **arguments: Any) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {"accept": "application/json, text/event-stream"}
    assert server.client.post("/mcp", json=call, headers=headers).status_code == 200


def test_lines_name_tool_root_and_documents(served_root: Path, tmp_path: Path) -> None:
    audit = Audit(AuditLog(AuditRules(file="audit.jsonl"), tmp_path))
    with running_server({"carol": served_root, "other": served_root}, audit=audit) as server:
        call_tool(server, "entity", name="Scrooge", root="carol")
        call_tool(server, "entity", name="Nobody of that name", root="other")
        call_tool(server, "entity", name="Scrooge", root="hidden")
        call_tool(server, "roots")
        body = {"question": "Who is Tiny Tim?", "context_only": True}
        answer = server.client.post("/search?root=carol", json=body, headers={"accept-encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip"
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    shown = [(line["route"], line.get("tool"), line.get("root")) for line in lines]
    assert shown == [
        ("/mcp", "entity", "carol"),
        ("/mcp", "entity", "other"),
        ("/mcp", "entity", None),
        ("/mcp", "roots", None),
        ("/search", None, "carol"),
    ]
    assert lines[-1]["documents"] and lines[-1]["snapshot"]
