"""Dagster's UI, daemon and code server of a root as one group: `python -m graphrag_pipeline.defs.dev.processes`.

Dagster's command `dagster dev` starts and ends them. Its daemon is replaced by ours, and a thread beside it watches
settings and prompts. Keep out: the command that people type (`commands/serving.py`).
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from subprocess import Popen
from typing import Any

from graphrag_pipeline.defs.dev.reloading import watch_in_background
from graphrag_pipeline.defs.runs.private_api import DAEMON_MODULE, dev_commands

LOCATION = "graphrag_pipeline.definitions"
"""The module with the definitions, and the name that the UI gives it."""
_ROOT_VARIABLE = "GRAPHRAG_ROOT"
_OUR_DAEMON = "graphrag_pipeline.defs.dev.daemon"


def main() -> None:
    """Run until Ctrl-C, on the root that GRAPHRAG_ROOT names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", required=True)
    parser.add_argument("--reload", action="store_true")
    chosen = parser.parse_args()
    dev = dev_commands()
    start = dev.open_ipc_subprocess

    def start_ours(parts: Sequence[str], **options: Any) -> Popen[Any]:
        return start([_OUR_DAEMON if part == DAEMON_MODULE else part for part in parts], **options)

    dev.open_ipc_subprocess = start_ours
    if chosen.reload:
        watch_in_background(Path(os.environ[_ROOT_VARIABLE]), chosen.host, chosen.port, LOCATION)
    dev.dev_command(["-m", LOCATION, "-h", chosen.host, "-p", chosen.port], prog_name="dagster dev")


if __name__ == "__main__":
    main()
