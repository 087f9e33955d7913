"""Model server in a thread, for tests that call it over real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

from graphrag_pipeline_tests.model_server.scripts import Script
from graphrag_pipeline_tests.model_server.server import ModelServer, ServerSettings


@contextlib.contextmanager
def running_model_server(script: Script | None = None, *, port: int = 0, **settings: Any) -> Iterator[ModelServer]:
    """Run a server in a thread until the block ends; `settings` are the fields of `ServerSettings`.

    Raises:
        OSError: the port is taken.
        Exception: at the end, the first thing that the script raised.
    """
    server = ModelServer(ServerSettings(**settings), script)
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        stop = asyncio.Event()
        await server.serve(port, stop, lambda: started.set_result((asyncio.get_running_loop(), stop)))

    def run() -> None:
        try:
            asyncio.run(serve())
        except OSError as error:
            started.set_exception(error)

    thread = threading.Thread(target=run, name="model-server")
    thread.start()
    try:
        loop, stop = started.result()
    except OSError:
        thread.join()
        raise
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
    if server.script_errors:
        raise server.script_errors[0]
