"""Main program of the process that reads risky files for another one (see `reading_process.py`).

It reads requests from standard input, one JSON object per line, and writes for each a line of JSON and the Parquet
bytes of the records to standard output. It ends at the end of its input. Its memory is limited for each file. Keep out:
the limit of time, which the other process holds.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

from graphrag_pipeline.inputs.documents import access_problem, problem_record, read_records
from graphrag_pipeline.inputs.record_files import ReadFile, dump_records
from graphrag_pipeline.settings.settings import InputSettings

_MEGABYTE = 1_000_000


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
        settings = InputSettings.model_validate(request["settings"])
        _limit_memory(settings.max_memory_mb)
        found = _read(request, settings)
        _limit_memory(None)
        data = dump_records(found.records)
        replies.write(json.dumps({"n_bytes": len(data), "digest": found.digest}).encode() + b"\n")
        replies.write(data)
        replies.flush()


def _read(request: dict[str, Any], settings: InputSettings) -> ReadFile:
    path, digest = request["path"], ""
    try:
        data = Path(request["location"]).read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        return ReadFile(read_records(path, data, settings), digest)
    except MemoryError:
        return ReadFile([problem_record(path, memory_problem(settings.max_memory_mb), is_unknown=True)], digest)
    except OSError as error:
        return ReadFile([problem_record(path, access_problem(error), is_unknown=True)], "")


def _limit_memory(max_memory_mb: int | None) -> None:
    """Limit the memory that this process may take in addition to what it has; None lifts the limit."""
    try:
        import resource

        status = Path("/proc/self/status").read_text()
    except (ImportError, OSError):  # other systems have no such limit
        return
    used = int(status.partition("VmData:")[2].split()[0]) * 1_024
    limit = resource.RLIM_INFINITY if max_memory_mb is None else used + max_memory_mb * _MEGABYTE
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.RLIM_INFINITY))


def main() -> None:
    """Serve the process that started this one; what a library prints does not get between the replies."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
