"""Main program of the process that reads risky files for another one (see `reading_process.py`).

It reads requests from standard input, one JSON object per line, and writes for each a line of JSON and the Parquet
bytes of the records to standard output. It ends at the end of its input. Its memory is limited for each file. Keep out:
the limit of time, which the other process holds.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import BinaryIO

from graphrag_pipeline.inputs.conversion import load_converter
from graphrag_pipeline.inputs.documents import read_records
from graphrag_pipeline.inputs.formats import CONVERTED
from graphrag_pipeline.inputs.record_files import ReadFile, dump_records
from graphrag_pipeline.inputs.source_records import access_problem, format_of, problem_record
from graphrag_pipeline.memory_limit import limited_memory
from graphrag_pipeline.settings.input import InputSettings

OUT_OF_MEMORY = 77
"""Status of the process when it ends because it cannot reply."""

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
