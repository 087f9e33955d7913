"""`python -m graphrag_pipeline` and the installed command are the command line, in a process of its own.

Such a process ends at once: see `_leave`. Keep out: commands and their exit status (`cli.py`).
"""

import atexit
import os
import sys
from typing import NoReturn


def run() -> NoReturn:
    """Run the command line and end the process; its exit status is that of `cli.main`."""
    status: list[int] = []
    atexit.register(_leave, status)  # before a library registers its own: the last one registered runs first
    from graphrag_pipeline.cli import main

    try:
        main()
    except SystemExit as end:
        status.append(int(end.code or 0))
        raise


def _leave(status: list[int]) -> None:
    """End the process with its exit status, if the command came to one.

    Threads have ended, and all other functions registered with `atexit` have run. Otherwise, Python would search its
    memory three times for unreachable objects: 2 of the 24 s of a small index run.
    """
    if not status:
        return
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):  # Python tells of it on its way out
        return
    os._exit(status[0])


if __name__ == "__main__":
    run()
