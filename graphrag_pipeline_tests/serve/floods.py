"""Hostile requests by kind, sent to a server while `/health` is asked beside them.

    python -m graphrag_pipeline_tests.serve.floods ROOT

starts `serve` for an indexed root, sends `N_EACH` requests of each kind to it, prints the slowest answer of `/health`
for each kind, and ends the server. It talks to loopback only. Every kind ends after `MAX_S` seconds at the latest.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from graphrag_pipeline_tests.support.command_line import environment, program

N_EACH = 200
N_SENDERS = 4
MAX_S = 20.0
"""Seconds of one kind; a server that takes long for each request gets fewer than `N_EACH`."""
ANSWER_S = 60.0
PAUSE_S = 0.02
"""Seconds between two questions to `/health`."""
Make = Callable[[int], bytes]
"""The bytes of a request by its number."""


def post(path: str, body: object) -> bytes:
    """A POST of JSON, word for word; a body of bytes is sent as it is."""
    content = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\n"
    head += f"accept: application/json, text/event-stream\r\ncontent-length: {len(content)}\r\n\r\n"
    return head.encode() + content


def search(**values: object) -> bytes:
    return post("/search", {"question": "Who is Bob Cratchit?", **values})


def chat(messages: list[dict[str, object]], **values: object) -> bytes:
    return post("/v1/chat/completions", {"model": "local", "messages": messages, **values})


def tool(name: str, /, **arguments: object) -> bytes:
    call = {"name": name, "arguments": arguments}
    return post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})


def repeated(unit: str, n: int, end: str = "") -> str:
    return (unit * (n // len(unit) + 1))[:n] + end


UNITS = (". ", "\u0301", " ", "\t", "1", "a", "A. ", "Bob ", "'s ", "\u2019", "ア", "的", "of the ", "2024 ", "(", "क्")


def question(n: int) -> bytes:
    unit = UNITS[n % len(UNITS)]
    return search(question=f"Who is Bob Cratchit {repeated(unit, 20_000)}{'b' * (n % 2)}", context_only=n % 3 == 0)


def history(n: int) -> bytes:
    long = repeated(UNITS[n % len(UNITS)], 4_000)
    turns = [{"role": ("user", "assistant")[m % 2], "content": long} for m in range((200, 60, 25)[n % 3])]
    return (chat([*turns, {"role": "user", "content": "Who?"}]), search(history=turns))[n % 2]


def filters(n: int) -> bytes:
    text = (
        "title=" + "1" * 10_000 + "x",
        "a" + " " * 6_000 + "b",
        "title=" + "a," * 400_000,
        "x" * 900 + "=1",
        "title=" + "a," * 490,
        " " * 900 + "in" + " " * 90,
    )[n % 6]
    many = [text] * (33 if n % 4 == 0 and len(text) < 1_000 else 1)
    return (
        search(filters=many),
        chat([{"role": "user", "content": "Who?"}], filters=many),
        tool("search", question="Who is Tim?", filters=many),
        post("/follow-ups", {"filters": many}),
    )[n // 6 % 4]


def keys(n: int) -> bytes:
    names = ",".join(f'"k{m}":1' for m in range((15_000, 19_000, 80_000)[n // 3 % 3]))
    return post(("/search", "/v1/chat/completions", "/mcp")[n % 3], b'{"k1":1,%s}' % names.encode())


def options(n: int) -> bytes:
    return search(
        options=(
            {"include_entity_names": [f"Tim {m}" for m in range(20_000)]},
            {"a" * (200_000, 900_000)[n // 4 % 2]: 1},
            {"include_entity_names": ["T" * (200_000, 900_000)[n // 4 % 2]]},
            {f"o{m}": m for m in range(900)},
        )[n % 4]
    )


def nested(n: int) -> bytes:
    size = (19_000, 400_000)[n // 24 % 2]
    deep = (
        b"[" * size,
        b'{"a":' * (size // 2),
        b'{"question":' + b"[" * 900 + b"]" * 900 + b"}",
        b"9" * (10 * size),
        b"[" + b"1," * size + b"1]",
        b'{"question":"a","history":[' + b"1," * size + b"1]}",
    )[n % 6]
    return post(("/search", "/v1/chat/completions", "/mcp", "/follow-ups")[n // 6 % 4], deep)


def parts(n: int) -> bytes:
    size = (9_000, 100_000)[n // 4 % 2]
    content = ([1] * size, [{"type": "text", "text": "a"}] * (size // 2), [{}] * size, [1] * 17)[n % 4]
    return chat([{"role": "user", "content": content}] * (1 if n % 4 < 3 else 990))


def names(n: int) -> bytes:
    name = repeated(UNITS[n % len(UNITS)], (80_000, 900_000)[n // 4 % 2])
    return (
        tool("entity", name=name),
        tool("search", question="Who?", method=name),
        chat([{"role": "user", "content": "Who?"}], strategy=name),
        search(snapshot=name),
    )[n % 4]


def targets(n: int) -> bytes:
    value = ("%20" * 2_000, "9" * 4_000, "a" * 6_000, "%CC%81" * 1_000, "=" * 6_000)[n % 5]
    path = (
        f"/entities/{value}",
        f"/entities?search={value}",
        f"/entities?limit={value}",
        f"/documents?filter={value}",
        f"/v1/models/{value}",
        f"/graph?entity={value}",
    )[n % 6]
    return f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n".encode()


KINDS: Mapping[str, Make] = {
    one.__name__: one for one in (question, history, filters, keys, options, nested, parts, names, targets)
}


def send(port: int, content: bytes) -> str:
    """Send a request, and return the status of its answer; "" if the connection ends without one."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S) as connection:
            connection.sendall(content)
            answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    except OSError:
        return ""
    return answer[9:12].decode("latin-1")


def endless_head(port: int) -> None:
    """Send a header line of 20 MB."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nx-a: ")
        for _ in range(300):
            connection.sendall(b"a" * 65_536)


def slow_heads(port: int, n: int, seconds: float) -> None:
    """Hold connections whose headers come byte by byte."""
    with contextlib.ExitStack() as opened:
        held = []
        for _ in range(n):
            with contextlib.suppress(OSError):
                held.append(opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5)))
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            for one in held:
                with contextlib.suppress(OSError):
                    one.sendall(b"G")
            time.sleep(1.0)


def _send_kind(port: int, kind: str, numbers: list[int], ends: float, n_answered: Any) -> None:
    for number in numbers:
        if time.monotonic() > ends:
            return
        if kind == "endless heads":
            endless_head(port)
        else:
            send(port, KINDS[kind](number))
        with n_answered.get_lock():
            n_answered.value += 1


def slowest_health(port: int, kind: str, max_s: float = MAX_S) -> tuple[float, int]:
    """Send `N_EACH` requests of a kind from processes of their own.

    Returns:
        The slowest `/health` beside them in seconds, and the number of requests that ended.
    """
    ends = time.monotonic() + max_s
    made = multiprocessing.get_context("spawn")
    n_answered = made.Value("i", 0)
    if kind == "slow heads":
        senders = [made.Process(target=slow_heads, args=(port, 2 * N_EACH, 0.75 * max_s))]
    else:
        shares = [list(range(first, N_EACH, N_SENDERS)) for first in range(N_SENDERS)]
        senders = [made.Process(target=_send_kind, args=(port, kind, share, ends, n_answered)) for share in shares]
    for sender in senders:
        sender.start()
    slowest = 0.0
    asked = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
    while any(sender.is_alive() for sender in senders):
        started = time.monotonic()
        status = send(port, asked)
        slowest = max(slowest, time.monotonic() - started if status == "200" else ANSWER_S)
        if time.monotonic() > ends:
            for sender in senders:
                sender.kill()
        time.sleep(PAUSE_S)
    for sender in senders:
        sender.join()
    return slowest, n_answered.value


@contextlib.contextmanager
def serving(root: Path) -> Iterator[int]:
    """Run `serve` for a root; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen(program("--root", root, "serve", "--port", str(port)), env=environment()) as process:
        try:
            deadline = time.monotonic() + 60
            while send(port, b"GET /ready HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n") != "200":
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("the server did not start")
                time.sleep(0.1)
            yield port
        finally:
            process.kill()


ALL_KINDS = (*KINDS, "endless heads", "slow heads")


def main() -> None:
    """Print the slowest `/health` for each kind; each kind has a server of its own."""
    for kind in sys.argv[2:] or ALL_KINDS:
        with serving(Path(sys.argv[1])) as port:
            slowest, n_answered = slowest_health(port, kind)
            print(f"{kind:14} {slowest:8.3f} s beside {n_answered} requests", flush=True)


if __name__ == "__main__":
    main()
