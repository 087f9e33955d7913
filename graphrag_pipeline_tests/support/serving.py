"""A server of roots in a thread of this process, asked through a real socket."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from graphrag_pipeline.serve.app import LOOPBACK, build_app
from graphrag_pipeline.serve.gate import GuardedConnection
from graphrag_pipeline.serve.served_roots import ServedRoots

_WAIT_S = 30.0


class RunningServer:
    """A listening server.

    Attributes:
        url: `http://127.0.0.1:PORT`
        client: an HTTP client of it.
    """

    def __init__(self, server: uvicorn.Server, port: int, served: ServedRoots) -> None:
        self.server = server
        self.port = port
        self.served = served
        self.url = f"http://127.0.0.1:{port}"
        self.client = httpx.Client(base_url=self.url, timeout=60)


@contextmanager
def running_server(roots: Mapping[str, Path], find_view: Any = None, **options: Any) -> Iterator[RunningServer]:
    """Serve roots until the block ends; `options` go to `build_app`."""
    served = ServedRoots(roots, find_view)
    app = build_app(served, hosts=LOOPBACK, **options)
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, ws="none", http=GuardedConnection, timeout_graceful_shutdown=5
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    deadline = time.monotonic() + _WAIT_S
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise RuntimeError("the server did not start")
        time.sleep(0.01)
    running = RunningServer(server, port, served)
    try:
        with running.client:
            yield running
    finally:
        server.should_exit = True
        thread.join(_WAIT_S)
        listening.close()
