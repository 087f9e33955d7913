"""Heads of requests that are endless, slow or many, through real sockets."""

from __future__ import annotations

import contextlib
import itertools
import socket
import time

import pytest

from graphrag_pipeline.serve import gate
from graphrag_pipeline.serve.limits import MAX_HEADER_BYTES, MAX_UNREAD_HEADS
from graphrag_pipeline_tests.support.serving import RunningServer

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
