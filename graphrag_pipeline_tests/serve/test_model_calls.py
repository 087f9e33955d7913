"""Model calls of a question end with its client."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest

from graphrag_pipeline_tests.model_server import ReceivedRequest
from graphrag_pipeline_tests.support.models.model_roots import ModelIndex
from graphrag_pipeline_tests.support.serving import running_server
from graphrag_pipeline_tests.support.thoroughness import usually


@pytest.mark.parametrize("path", usually(["/search", "/search/stream"], "/search/stream"))
def test_model_calls_end_when_the_client_goes_away(model_index: ModelIndex, path: str) -> None:
    is_asked, may_answer = threading.Event(), threading.Event()

    def wait(request: ReceivedRequest) -> object:
        is_asked.set()
        may_answer.wait(60)
        return None

    model_index.script = wait
    try:
        with running_server({"articles": model_index.root.path}) as server:
            body = json.dumps({"question": "Who leads the council?"}).encode()
            head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
                assert is_asked.wait(30)
            deadline = time.monotonic() + 30
            while "graphrag_requests_running 0.0" not in server.client.get("/metrics").text:
                assert time.monotonic() < deadline, "the search goes on without its client"
                time.sleep(0.05)
    finally:
        may_answer.set()
