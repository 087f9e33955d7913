"""Compressed answers: the same content, smaller, only for clients that ask, and never events."""

from __future__ import annotations

import gzip
import json
import socket

import pytest

from graphrag_pipeline_tests.support.serving import RunningServer


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
