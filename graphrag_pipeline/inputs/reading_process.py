"""A process of its own for files whose reading may take any time and memory: html, pdf, office, Parquet, large ones.

It is started with the first such file, serves many, and is started again after a file that it did not survive. Text,
and small structured files, are read in the calling process, because their cost is bounded by their size. What goes
wrong is the problem of the file. `main` is the program of that process: it reads requests from standard input, one JSON
object per line, and writes for each a line of JSON and the Parquet bytes of the records. Its memory is limited for each
file; the calling process holds the limit of time. Keep out: the reading itself (`documents.py`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import BinaryIO

from graphrag_pipeline.inputs.conversion import load_converter
from graphrag_pipeline.inputs.documents import read_records
from graphrag_pipeline.inputs.formats import CONVERTED, STRUCTURED
from graphrag_pipeline.inputs.source_records import (
    ReadFile,
    access_problem,
    dump_records,
    format_of,
    load_records,
    problem_record,
)
from graphrag_pipeline.memory_limit import has_no_memory_left, limited_memory
from graphrag_pipeline.settings.input import InputSettings

_WORKER = "graphrag_pipeline.inputs.reading_process"
_SMALL_BYTES = 1_000_000
"""Largest structured file that is read in the calling process; JSON takes about 30 times its size in memory."""
_START_S = 60.0
"""Added to the time of the first file of a process, which has to start."""
OUT_OF_MEMORY = 77
"""Status of the process when it ends because it cannot reply."""
_MEGABYTE = 1_000_000
_MEMORY_STATUSES = frozenset({OUT_OF_MEMORY, 127, -6, -9, -11})
"""Statuses of a process without memory; 127 is that of the loader of libraries, -9 that of one ended for it."""
_CHUNK_BYTES = 1 << 20
_WATCH_S = 0.5
"""Seconds between two looks at the memory of a process that has not replied."""
_MOST_FULL = 2
"""Looks in a row at which a process is at its limit of memory, after which it is ended."""


def is_risky(path: str, n_bytes: int) -> bool:
    """Whether a file is read in a process of its own: what it unpacks to does not follow from its size, or it is large.

    Text is never risky: its cost is a small multiple of its size.
    """
    format = format_of(path)
    return format in CONVERTED or format == "parquet" or (format in STRUCTURED and n_bytes > _SMALL_BYTES)


def read_apart(location: bytes, path: str, settings: InputSettings, digest: str) -> ReadFile:
    """Return the records of a file as `documents.read_records` does, read within the limits of time and memory.

    Args:
        location: of the file on this machine.
        path: path relative to the input folder.
        digest: sha256 of the file; that of a file that takes too long, which is not known otherwise.
    """
    with _lock:
        return _process().read(location, path, settings, digest)


def _time_problem(settings: InputSettings) -> str:
    return (
        f"reading takes longer than input.max_read_s = {settings.max_read_s:g} seconds; raise it, or split or exclude "
        "the file"
    )


class _EndedError(Exception):
    """The process ended before it replied."""


class _SlowReadError(Exception):
    """The reply did not arrive in time."""


class _ReadingProcess:
    """A running process that reads files, one at a time."""

    def __init__(self) -> None:
        # In a session of its own, so that Ctrl-C reaches it by the end of its input alone.
        self._process = subprocess.Popen(
            [sys.executable, "-m", _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self.owner = os.getpid()
        self._n_read = 0
        self._received = bytearray()

    @property
    def is_usable(self) -> bool:
        return self.owner == os.getpid() and self._process.poll() is None

    def read(self, location: bytes, path: str, settings: InputSettings, digest: str) -> ReadFile:
        limit_s = settings.max_read_s + (0 if self._n_read else _START_S)
        self._n_read += 1
        request = {"location": os.fsdecode(location), "path": path, "settings": settings.model_dump(mode="json")}
        is_done = False
        try:
            found = self._ask(json.dumps(request).encode() + b"\n", time.monotonic() + limit_s)
            is_done = True
            return found
        except _SlowReadError:
            return ReadFile([problem_record(path, _time_problem(settings), is_unknown=True)], digest)
        except _EndedError:
            return ReadFile([problem_record(path, self._why_it_ended(settings), is_unknown=True)], "")
        finally:
            if not is_done:  # also after Ctrl-C, since its reply would be taken for that of the next file
                self.stop()

    def _ask(self, request: bytes, deadline: float) -> ReadFile:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(request)
            self._process.stdin.flush()
        except OSError:
            raise _EndedError from None
        head = json.loads(self._receive_line(deadline))
        return ReadFile(load_records(self._receive(head["n_bytes"], deadline)), head["digest"])

    def _receive_line(self, deadline: float) -> bytes:
        while b"\n" not in self._received:
            self._receive_more(deadline)
        line, _, rest = bytes(self._received).partition(b"\n")
        self._received = bytearray(rest)
        return line

    def _receive(self, n_bytes: int, deadline: float) -> bytes:
        while len(self._received) < n_bytes:
            self._receive_more(deadline)
        received, self._received = bytes(self._received[:n_bytes]), bytearray()
        return received

    def _receive_more(self, deadline: float) -> None:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            n_full = 0
            while not selector.select(min(_WATCH_S, max(0.0, deadline - time.monotonic()))):
                if time.monotonic() >= deadline:
                    raise _SlowReadError
                n_full = n_full + 1 if has_no_memory_left(self._process.pid) else 0
                if n_full == _MOST_FULL:
                    self._process.kill()
                    raise _EndedError
        received = os.read(self._process.stdout.fileno(), _CHUNK_BYTES)
        if not received:
            raise _EndedError
        self._received += received

    def _why_it_ended(self, settings: InputSettings) -> str:
        """Return the problem of the file; a library in C ends the process if it gets no memory."""
        status = self._process.wait()
        if status in _MEMORY_STATUSES:  # which of them, is chance
            return memory_problem(settings.max_memory_mb)
        return f"its reader ended with status {status}; open the file and save it again, or exclude it"

    def stop(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe:
                    pipe.close()


_lock = threading.Lock()
_running: list[_ReadingProcess] = []
"""The process of this one, if it was started; a fork starts its own."""


def _process() -> _ReadingProcess:
    if not _running or not _running[0].is_usable:
        _running[:] = [_ReadingProcess()]
    return _running[0]


def memory_problem(max_memory_mb: int) -> str:
    """Return the problem of a file that needs more memory than it may have."""
    return (
        f"needs more memory than input.max_memory_mb = {max_memory_mb:,}; raise it if you trust the file, or split or "
        "exclude the file"
    )


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until there are no more."""
    for line in requests:
        request = json.loads(line)
        found = _read(request["path"], request["location"], InputSettings.model_validate(request["settings"]))
        data = dump_records(found.records)
        replies.write(json.dumps({"n_bytes": len(data), "digest": found.digest}).encode() + b"\n")
        replies.write(data)
        replies.flush()


def _read(path: str, location: str, settings: InputSettings) -> ReadFile:
    format, digest = format_of(path), ""
    if format in CONVERTED:
        with contextlib.suppress(ImportError):  # a problem of the file
            load_converter(format)
    try:
        with limited_memory(settings.max_memory_mb * _MEGABYTE):
            data = Path(location).read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            return ReadFile(read_records(path, data, settings), digest)
    except MemoryError:
        problem = memory_problem(settings.max_memory_mb)
    except OSError as error:
        problem, digest = access_problem(error), ""
    # Outside of the handlers: as long as one runs, its error keeps the memory of all that was being read.
    return ReadFile([problem_record(path, problem, is_unknown=True)], digest)


def main() -> None:
    """Serve the process that started this one; what a library prints does not get between the replies."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        serve(sys.stdin.buffer, replies)
    except MemoryError:  # there was not even the memory to reply
        os._exit(OUT_OF_MEMORY)


if __name__ == "__main__":
    main()
