"""Speed and memory of the server on a large index: context-only searches through real sockets, one server process.

The server is the command `serve` in a process of its own. Clients are coroutines of this process with one connection
each; hardly any question is asked twice. Memory is the resident memory of the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from graphrag_pipeline_tests.bench.large_index import Shape
from graphrag_pipeline_tests.bench.local_context import ask_about
from graphrag_pipeline_tests.bench.measuring import Figure

N_REQUESTS = 20_000
N_TIMED = 320
_WAIT_S = 120.0


@contextlib.contextmanager
def serving(root: Path) -> Iterator[tuple[int, int]]:
    """Run `serve` on a root; gives the port and the process id."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "graphrag_pipeline", "--root", str(root), "serve", "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(_WAIT_S)


def _wait_for(port: int, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + _WAIT_S
    while True:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the server did not start")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
            return
        time.sleep(0.2)


async def ask_all(port: int, questions: Sequence[str], n_clients: int) -> tuple[list[float], float]:
    """Ask all questions with some clients at once; returns the seconds of each, and of all.

    Raises:
        RuntimeError: an answer is not a success.
    """
    left = iter(questions)
    taken: list[float] = []

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
        for question in left:
            started = time.perf_counter()
            await _ask(reader, writer, question)
            taken.append(time.perf_counter() - started)
        writer.close()

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(n_clients)))
    return taken, time.perf_counter() - started


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, question: str) -> None:
    body = json.dumps({"question": question, "context_only": True}).encode()
    head = f"POST /search HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    writer.write(head.encode() + b"\r\n\r\n" + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[15:]) for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    content = await reader.readexactly(length)
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(content[:500].decode(errors="replace"))


def resident_memory(process: int) -> float:
    """Return the resident memory of a process in GB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e9 for line in lines if line.startswith("VmRSS:"))


def measure_server(root: Path) -> Iterator[Figure]:
    """Figures of one server process on an index of 100,000 entities."""

    def ask(n: int, seed: int, n_clients: int) -> tuple[list[float], float]:
        return asyncio.run(ask_all(port, ask_about(Shape.n_entities, n, seed), n_clients))

    with serving(root) as (port, process):
        ask(64, 11, 4)
        taken, _ = ask(N_TIMED, 13, 4)
        yield Figure("serve: 95th percentile, 4 clients", float(1000 * np.quantile(taken, 0.95)), "ms", 100.0)
        _, seconds = ask(2 * N_TIMED, 14, 32)
        yield Figure("serve: requests a second, 32 clients", 2 * N_TIMED / seconds, "1/s", least=60.0)
        ask(N_REQUESTS, 15, 16)
        yield Figure(f"serve: resident memory after {N_REQUESTS:,} requests", resident_memory(process), "GB", 0.9)
