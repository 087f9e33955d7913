"""Hostile requests: malformed ones, floods, and texts that patterns would read in the square of their length."""

from __future__ import annotations

import inspect
import itertools
import json
import pkgutil
import re
import socket
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import graphrag_pipeline
from graphrag_pipeline.text.late_patterns import LatePattern
from graphrag_pipeline_tests.serve.floods import ALL_KINDS, serving, slowest_health
from graphrag_pipeline_tests.support.serving import RunningServer
from graphrag_pipeline_tests.support.thoroughness import IS_THOROUGH, repetitions, usually

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


READERS = ("citations", "filters", "identity", "query", "reading", "serve", "text", "turns")
UNITS = (" ", "\t", "1", "a", "A", ". ", "\u0301", "\n", "\\", "a ", "1 ", "a.", "1.", "a, ", "的", "[1]", "`a` ", "<a")
ENDS = (("", ""), ("", "x"), ("", "`"), ("# a", "\0"))
"""What is before and behind the repeated text."""
SHORT, MIDDLE, LONG = 10_000, 20_000, 100_000
LINEAR = 2.4
"""A pattern that takes less than this many times as long for `MIDDLE` as for `SHORT` is within 30 times for `LONG`: for
times a * n + b * n * n it means b < a / 4 at `SHORT`, and so at most (10 + 100 / 4) / (1 + 1 / 4) = 28 times."""
HARMLESS_S = 0.001
"""Seconds for `SHORT` that are harmless even if the time grows with the square of the length: 0.1 s for `LONG`."""
FLOOR_S = 0.5
"""Seconds of the processor that are never too long. A pattern that takes the square needs ten to a thousand times as
many for `LONG`."""


def pattern_calls() -> Iterator[tuple[str, Any, frozenset[str]]]:
    """All compiled patterns of the modules that a request reaches: name, pattern, and the methods that are called."""
    for found in pkgutil.walk_packages(graphrag_pipeline.__path__, "graphrag_pipeline."):
        if found.name.split(".")[1] in READERS:
            module = import_module(found.name)
            for name, value in vars(module).items():
                called = frozenset(re.findall(rf"\b{name}\.([a-z]+)\(", inspect.getsource(module)))
                for place, one in enumerate(_each(value)):
                    yield f"{found.name.removeprefix('graphrag_pipeline.')}.{name}.{place}", one, called


def _each(value: Any) -> Iterator[Any]:
    if isinstance(value, re.Pattern | LatePattern):
        yield value
    elif isinstance(value, list | tuple | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _each(one)


def texts_for(pattern: re.Pattern, n: int) -> Iterator[str]:
    """Texts of n characters that repeat what a pattern looks for, each with an end that it may not expect."""
    written = str(pattern.pattern)
    signs, words = re.findall(r"[^\w\s\\]", written), re.findall(r"[^\W\d_]{2,12}", written)
    for unit in dict.fromkeys((*UNITS, *signs, *words[:3])):
        for head, tail in ENDS:
            yield head + (unit * (n // len(unit) + 1))[:n] + tail


def seconds(pattern: re.Pattern, called: frozenset[str], text: str) -> float:
    """Return the time of a pattern for a text in the ways that it is called."""
    content: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
    started = time.thread_time()
    for method in called & {"match", "fullmatch"}:
        getattr(pattern, method)(content)
    if not called or called - {"match", "fullmatch"}:
        pattern.findall(content)
    return time.thread_time() - started


CALLS = list(pattern_calls())


@pytest.mark.parametrize(("pattern", "called"), [call[1:] for call in CALLS], ids=[call[0] for call in CALLS])
def test_a_pattern_takes_time_by_the_length_of_a_text(pattern: re.Pattern, called: frozenset[str]) -> None:
    texts = zip(*(texts_for(pattern, n) for n in (SHORT, MIDDLE, LONG)), strict=True)
    for short, middle, long in texts:
        took = seconds(pattern, called, short)
        assert took < FLOOR_S, short[:20]
        if took < HARMLESS_S or (not IS_THOROUGH and seconds(pattern, called, middle) < LINEAR * took):
            continue
        assert seconds(pattern, called, long) < max(FLOOR_S, 30 * took), long[:20]


MOST_S = 5.0
"""Ten times what is wanted on a machine of its own: the attackers and other tests share the processors."""


@pytest.fixture(scope="module")
def flooded_port(served_root: Path) -> Iterator[int]:
    """A server in a process of its own, for all kinds in turn."""
    with serving(served_root) as port:
        yield port


@pytest.mark.parametrize("kind", usually(ALL_KINDS, "nested", "slow heads"))
def test_health_answers_beside_a_flood(flooded_port: int, kind: str) -> None:
    slowest, n_answered = slowest_health(flooded_port, kind, repetitions(8, thorough=20))
    assert slowest < MOST_S and (n_answered or kind == "slow heads")  # which never end
