"""A proxy on loopback between the product and a model endpoint; it records each request and whether it was answered."""

from __future__ import annotations

import http.client
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_PASSED_ON = ("authorization", "api-key", "content-type", "accept")
TIMEOUT_S = 900


@dataclass
class Exchange:
    """One request body, and the status of its whole answer; None if there was none."""

    path: str
    body: bytes
    status: int | None = None
    reply: bytes = b""


@dataclass
class RecordingProxy:
    """All exchanges since the start, in order of arrival."""

    base_url: str = ""
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def answered(self) -> list[Exchange]:
        """The exchanges with a reply of the model."""
        return [one for one in self.exchanges if one.status == 200 and one.body]

    def repeated(self) -> list[bytes]:
        """Return the bodies that were answered more than once, so that the model did equal work twice."""
        counts = Counter((one.path, one.body) for one in self.answered)
        return [body for (_, body), n in counts.items() if n > 1]

    def tokens(self) -> tuple[int, int]:
        """Return the tokens of prompts and replies that the endpoint reported."""
        usages = [_usage_of(one.reply) for one in self.answered]
        return sum(usage[0] for usage in usages), sum(usage[1] for usage in usages)


class _QuietServer(ThreadingHTTPServer):
    """A server to which a client that was killed is not an error."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass


def _usage_of(reply: bytes) -> tuple[int, int]:
    """Return the tokens that a reply reports, whole or as a stream; zeros without any."""
    usage: dict[str, Any] = {}
    for part in reply.splitlines() if reply.startswith(b"data:") else [reply]:
        with suppress(ValueError, AttributeError):
            usage = json.loads(part.removeprefix(b"data:")).get("usage") or usage
    return int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)


@contextmanager
def recording_proxy(target: str) -> Iterator[RecordingProxy]:
    """Forward requests to the endpoint at `target` until the block ends; a stream is passed on when it is whole."""
    place = urlsplit(target)
    record = RecordingProxy()
    connect = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._forward(b"")

        def do_POST(self) -> None:
            self._forward(self.rfile.read(int(self.headers.get("content-length") or 0)))

        def _forward(self, body: bytes) -> None:
            exchange = Exchange(self.path, body)
            record.exchanges.append(exchange)
            headers = {name: self.headers[name] for name in _PASSED_ON if name in self.headers}
            upstream = connect(place.hostname or "", place.port, timeout=TIMEOUT_S)
            try:
                upstream.request(self.command, place.path.rstrip("/") + self.path.removeprefix("/v1"), body, headers)
                answer = upstream.getresponse()
                content = answer.read()
                self.send_response(answer.status)
                self.send_header("content-type", answer.headers.get("content-type", "application/json"))
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
                exchange.status, exchange.reply = answer.status, content
            except (OSError, http.client.HTTPException):
                self.close_connection = True
            finally:
                upstream.close()

        def log_message(self, *_: object) -> None:
            pass

    with _QuietServer(("127.0.0.1", 0), Handler) as server:
        record.base_url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield record
        finally:
            server.shutdown()
            thread.join()
