"""Hostile requests: traversal, oversized, malformed, injection in every field. Each gets a 4xx in the one form."""

from __future__ import annotations

import itertools
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from graphrag_pipeline_tests.support.serving import RunningServer

PAYLOADS = (
    "../../../../etc/passwd",
    "..\\..\\settings.yaml",
    "/etc/passwd",
    "file:///etc/passwd",
    "' OR '1'='1",
    "1; DROP TABLE documents;--",
    "<script>alert(1)</script>",
    "{{7*7}}${7*7}",
    "$(touch /tmp/x)`id`|id",
    "\x00\x01\x02",
    "\u202e\ufeff\ud7ff",
    "%2e%2e%2f%00",
    "__class__.__mro__",
    "a" * 3_000,
    "9" * 400,
    "-1e999",
    "NaN",
    '{"$ne": null}',
    "\r\nx-injected: 1",
    "🦄" * 50,
)
BODY = {"question": "Who is Bob Cratchit?", "context_only": True}
VALUES = (*PAYLOADS, None, True, -1, 10**400, [], {}, [[]], {"a": {"b": []}})
KEYED = ("/entities/{}", "/entities/{}/neighbours", "/relationships/{}", "/communities/{}", "/reports/{}",
         "/documents/{}", "/documents/{}/text", "/documents/{}/mentions", "/text-units/{}", "/snapshots/{}",
         "/v1/models/{}", "/{}", "/static/{}")  # fmt: skip
TYPED = (("/entities", ("limit", "offset", "community", "sort", "root", "snapshot", "filter", "unknown")),
         ("/relationships", ("limit", "offset", "entity", "sort", "root", "snapshot", "filter")),
         ("/communities", ("limit", "offset", "level", "parent", "sort", "root", "snapshot", "filter")),
         ("/documents", ("limit", "offset", "sort", "root", "snapshot", "filter")),
         ("/documents/1/text", ("start", "end", "root", "snapshot", "filter")),
         ("/snapshots/diff", ("from", "to", "root")),
         ("/costs", ("by", "root")))  # fmt: skip


def hostile_requests() -> Iterator[tuple[str, str, Any]]:
    """(method, target, body) of requests that no server should accept."""
    for path, payload in itertools.product(KEYED, PAYLOADS):
        yield "GET", path.format(quote(payload.encode(), safe="")), None
    for (path, names), payload in itertools.product(TYPED, PAYLOADS):
        for name in names:
            yield "GET", f"{path}?{name}={quote(payload.encode(), safe='')}", None
    for field, value in itertools.product(("method", "strategy", "filters", "options", "history", "snapshot"), VALUES):
        if field == "filters" and isinstance(value, str):
            value = [value]
        if value not in ([], {}, None) and not (field == "options" and isinstance(value, dict) and not value):
            yield "POST", "/search", {**BODY, field: value}
    for field, value in itertools.product(("model", "messages"), VALUES):
        yield "POST", "/v1/chat/completions", {"model": "carol:local", "messages": [], field: value}


def send(server: RunningServer, method: str, target: str, content: bytes = b"") -> tuple[int, bytes]:
    """Send a request word for word, and return the status and the body."""
    head = f"{method} {target} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n"
    if content:
        head += f"content-type: application/json\r\ncontent-length: {len(content)}\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(head.encode("latin-1") + b"\r\n" + content)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    first, _, body = answer.partition(b"\r\n\r\n")
    return int(first.split()[1]), body


def test_a_thousand_hostile_requests_get_4xx(server: RunningServer) -> None:
    requests = list(hostile_requests())
    wrong = []
    for method, target, body in requests:
        content = b"" if body is None else json.dumps(body).encode()
        status, answer = send(server, method, target, content)
        if not 400 <= status < 500 or not json.loads(answer)["error"]["message"]:
            wrong.append((method, target[:120], str(body)[:200], status))
    assert len(requests) >= 1_000
    assert wrong == []


def test_text_is_text_wherever_text_is_asked(server: RunningServer) -> None:
    for payload in PAYLOADS:
        for path in ("/entities", "/relationships", "/documents"):
            status, answer = send(server, "GET", f"{path}?search={quote(payload[:900].encode(), safe='')}")
            assert status == 200 and json.loads(answer)["total"] == 0, payload
        status, _ = send(server, "POST", "/search", json.dumps({**BODY, "question": f"Who is {payload}?"}).encode())
        assert status == 200, payload


@pytest.mark.parametrize(
    ("value", "field", "limit"),
    [
        ({"filters": ["title=" + "1" * 10_000 + "x"]}, "filters.0", "1000"),
        ({"filters": ["title=a"] * 33}, "filters", "32"),
        ({"filters": ["title=" + "a," * 2_000]}, "filters.0", "1000"),
        ({"options": {"include_entity_names": ["Tim"] * 2_000}}, "include_entity_names", "200"),
        ({"options": {"include_entity_names": ["T" * 20_000]}}, "include_entity_names", "1,000"),
        ({"options": {"a" * 20_000: 1}}, "options", "100"),
        ({"options": {"options": {"include_entity_names": ["Tim"] * 201}}}, "include_entity_names", "200"),
        ({f"key{n}": 1 for n in range(15_000)}, "keys", "1,000"),
        ({"options": {"options": json.loads("[" * 20 + "]" * 20)}}, "options", "4"),
    ],
)
def test_a_value_over_its_limit_is_refused_by_name(
    server: RunningServer, value: dict[str, Any], field: str, limit: str
) -> None:
    messages = [{"role": "user", "content": "Who?"}]
    for path, body in (("/search", BODY), ("/v1/chat/completions", {"model": "carol:local", "messages": messages})):
        status, answer = send(server, "POST", path, json.dumps({**body, **value}).encode())
        message = json.loads(answer)["error"]["message"]
        assert status == 400 and field in message and limit in message and len(message) < 2_500


def test_limits_are_in_the_schemas(server: RunningServer) -> None:
    schemas = server.client.get("/openapi.json").json()["components"]["schemas"]
    for name in ("SearchBody", "ChatBody", "FollowUpsBody"):
        filters = schemas[name]["properties"]["filters"]
        assert (filters["maxItems"], filters["items"]["maxLength"]) == (32, 1_000)


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n" + b"x-a: " + b"b" * 40_000 + b"\r\n\r\n",
        b"GET /entities?" + b"a" * 60_000 + b" HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n",
        b"POST /search HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 99999999999\r\nconnection: close\r\n\r\n",
        b"POST /search HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: -5\r\nconnection: close\r\n\r\n",
        b"POST /search HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcde",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03",
        b"GET http://evil.example/ HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n",
        b"TRACE / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n",
    ],
)
def test_broken_http_never_gets_more_than_4xx(server: RunningServer, raw: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(raw)
        connection.settimeout(2)
        try:
            answer = connection.recv(65_536)
        except TimeoutError:
            answer = b""
    assert not answer or 400 <= int(answer.split()[1]) < 500
    assert server.client.get("/health").status_code == 200
