"""Speed and memory of the server on a large index: context-only searches through real sockets, one server process.

    python -m graphrag_pipeline_tests.bench.serve [FOLDER] [N_REQUESTS]

The index (`large_index.py`, 100,000 entities) is made in FOLDER at first use and used again; without FOLDER it is
temporary. The server is the command `serve` in a process of its own. Clients are coroutines of this process with one
connection each; hardly any question is asked twice. The time over that in a process compares medians of the
same questions, asked in turn. Memory is the resident memory of the server. Its growth, after a tenth of N_REQUESTS
(20,000) and after all, leaves out the pages of mapped files: they are the cache of the system. Other work on the
machine disturbs every figure, so the load is shown beside them; it disturbs processor time least.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.bench.large_index import Shape
from graphrag_pipeline_tests.bench.local_context import ask_about
from graphrag_pipeline_tests.bench.measuring import Figure, measure_module

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


def memory_of(process: int) -> tuple[float, float]:
    """Return the resident memory of a process, and the part that is not mapped files, in GB."""
    lines = (line.split() for line in Path(f"/proc/{process}/status").read_text().splitlines())
    found = {line[0]: int(line[1]) * 1024 / 1e9 for line in lines if line[0] in ("VmRSS:", "RssAnon:")}
    return found["VmRSS:"], found["RssAnon:"]


def processor_of(process: int) -> float:
    """Return the seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_overhead(root: Path, port: int, questions: Sequence[str]) -> float:
    """Return the milliseconds by which the server's median is over that of the same questions in this process."""
    served, inside = [], []
    with GraphIndex.open(root) as index:
        for question in questions:
            index.search(question, context_only=True)  # both find the pages of this question in memory
            asyncio.run(ask_all(port, [question], 1))
            started = time.perf_counter()
            index.search(question, context_only=True).to_json()
            inside.append(time.perf_counter() - started)
            [seconds], _ = asyncio.run(ask_all(port, [question], 1))
            served.append(seconds)
    return float(1000 * (np.median(served) - np.median(inside)))


def measure_server(root: Path, n_entities: int, n_requests: int) -> Iterator[Figure]:
    """Figures of one server process."""
    with serving(root) as (port, process):
        asyncio.run(ask_all(port, ask_about(n_entities, 64, seed=11), 4))
        yield Figure(f"serve: load {os.getloadavg()[0]:.1f}; median over that in process, 1 client",
                     measure_overhead(root, port, ask_about(n_entities, 60, seed=12)), "ms", 5.0)  # fmt: skip
        taken, _ = asyncio.run(ask_all(port, ask_about(n_entities, N_TIMED, seed=13), 4))
        yield Figure("serve: 95th percentile, 4 clients", float(1000 * np.quantile(taken, 0.95)), "ms", 100.0)
        before = processor_of(process)
        _, seconds = asyncio.run(ask_all(port, ask_about(n_entities, 2 * N_TIMED, seed=14), 32))
        yield Figure("serve: requests a second, 32 clients", 2 * N_TIMED / seconds, "1/s", least=60.0)
        spent = (processor_of(process) - before) / (2 * N_TIMED)
        yield Figure("serve: processor time of the server, a request", 1000 * spent, "ms")
        asyncio.run(ask_all(port, ask_about(n_entities, n_requests // 10, seed=15), 16))
        _, first = memory_of(process)
        asyncio.run(ask_all(port, ask_about(n_entities, n_requests - n_requests // 10, seed=16), 16))
        resident, own = memory_of(process)
        yield Figure(f"serve: resident memory after {n_requests:,} requests", resident, "GB", 0.9)
        yield Figure("serve: of it not mapped files", own, "GB")
        yield Figure(f"serve: that over the same after {n_requests // 10:,} requests", own / first, "times", 1.1)


def run(folder: Path | None = None, n_requests: int = N_REQUESTS) -> Iterator[Figure]:
    """Publish the index if the folder has none, and measure a server of it."""
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            yield from run(Path(temporary) / "root", n_requests)
        return
    if not (folder / "snapshots" / "current.json").exists():
        measure_module("graphrag_pipeline_tests.bench.large_index", str(folder), str(Shape.n_entities))
    yield from measure_server(folder, Shape.n_entities, n_requests)


def main(arguments: Sequence[str]) -> int:
    """Print every row; 1 if a limit does not hold."""
    folder = Path(arguments[0]) if arguments else None
    figures = []
    for figure in run(folder, *map(int, arguments[1:2])):
        print(figure.to_row(), flush=True)
        figures.append(figure)
    return int(any(figure.is_over or figure.is_under for figure in figures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
