"""An S3 server on loopback for tests: moto's, which speaks the protocol over HTTP, with faults and a count of requests.

`python -m graphrag_pipeline_tests.support.object_server` serves until it is stopped and prints its address.
Keep out: the stored objects.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

BUCKET = "graphrag"
Fault = Callable[[str, str], int | None]
"""(method, path) -> HTTP status to answer with, or `NO_ANSWER`; None for the true answer."""
NO_ANSWER = 0
"""In place of a status: the connection is closed."""


@dataclass
class ObjectServer:
    """A running server.

    Attributes:
        requests: (method, path) of every request, in order.
        fault: called before each request, which is not carried out then; None for no faults.
        fault_after: called after each request, which was carried out.
        ignores_conditions: whether it ignores the condition of a write, as older servers do.
    """

    port: int
    requests: list[tuple[str, str]] = field(default_factory=list)
    fault: Fault | None = None
    fault_after: Fault | None = None
    ignores_conditions: bool = False

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def options(self) -> dict[str, Any]:
        """Options of s3fs: the address and short time-outs."""
        return {
            "endpoint_url": self.endpoint,
            "key": "test",
            "secret": "test",
            "client_kwargs": {"region_name": "us-east-1"},
            "config_kwargs": {"retries": {"max_attempts": 1}, "read_timeout": 5, "connect_timeout": 2},
        }

    @property
    def environment(self) -> dict[str, str]:
        """The same options as an environment variable."""
        return {"FSSPEC_S3": json.dumps(self.options)}


@contextmanager
def running_object_server(port: int = 0) -> Iterator[ObjectServer]:
    """Serve an empty bucket `BUCKET` until the end of the block."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    server = ObjectServer(port)
    application = DomainDispatcherApplication(create_backend_app)

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        server.requests.append((method, path))
        status = server.fault(method, path) if server.fault else None
        if server.ignores_conditions:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        if status is None:
            head, true_answer = _carry_out(application, environ)
            status = server.fault_after(method, path) if server.fault_after else None
            if status is None:
                start_response(*head)
                return true_answer
        else:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if status == NO_ANSWER:
            raise ConnectionResetError
        body = b"<Error><Code>%s</Code><Message>made up</Message></Error>" % _CODES[status]
        start_response(f"{status} Fault", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        return [body]

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it would log every request
    http = make_server("127.0.0.1", port, answer, threaded=True)
    server.port = http.server_port
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        _make_bucket(server)
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def _carry_out(application: Callable[..., Iterable[bytes]], environ: dict[str, Any]) -> tuple[Any, list[bytes]]:
    """Return the arguments of `start_response`, and the body."""
    heads: list[Any] = []
    body = list(application(environ, lambda *head: heads.append(head)))
    return heads[0], body


_CODES = {403: b"AccessDenied", 500: b"InternalError", 503: b"ServiceUnavailable"}


def _make_bucket(server: ObjectServer) -> None:
    import urllib.request

    request = urllib.request.Request(f"{server.endpoint}/{BUCKET}", method="PUT")
    urllib.request.urlopen(request).read()
    server.requests.clear()


def main() -> None:
    """Serve until stopped."""
    with running_object_server() as server:
        print(f"export FSSPEC_S3='{server.environment['FSSPEC_S3']}'\n# s3://{BUCKET}/...", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
