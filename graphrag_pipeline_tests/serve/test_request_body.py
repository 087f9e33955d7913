"""Bodies that are too large or too slow, through real sockets."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from graphrag_pipeline.serve.limits import MAX_BODY_MARKS, ServerLimits
from graphrag_pipeline_tests.support.serving import RunningServer, running_server

HEAD = "POST /search HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"


def converse(server: RunningServer, *parts: bytes) -> tuple[int, dict[str, str]]:
    """Send the parts, then read the answer to its end: a client that writes everything before it reads."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        for part in parts:
            connection.sendall(part)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]


def test_a_client_that_sends_too_much_reads_why(server: RunningServer) -> None:
    chunked = (HEAD + "connection: close\r\ntransfer-encoding: chunked\r\n\r\n").encode()
    chunk = b"30D40\r\n" + b" " * 200_000 + b"\r\n"
    announced = (HEAD + "connection: close\r\ncontent-length: 8000000\r\n\r\n").encode()
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
        head = (HEAD + "connection: close\r\ncontent-length: 100\r\n\r\n").encode()
        status, error = converse(server, head, b'{"question": ')
        assert (status, error["code"]) == (408, "too_slow") and error["what_to_do"]
        body = {"question": "Who is Belle?", "method": "basic", "context_only": True}
        assert server.client.post("/search", json=body).status_code == 200, "work after the body has its own limit"
