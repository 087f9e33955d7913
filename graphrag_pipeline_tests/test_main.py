"""The process of a command: how it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_WITH_WORK_LEFT = """
import atexit, sys, threading
from graphrag_pipeline import cli
from graphrag_pipeline.__main__ import run

class Circle:
    def __init__(self): self.itself = self
    def __del__(self): print("searched for unreachable objects")

def work():
    threading.main_thread().join()
    print("the thread has ended")

main = cli.main
def begin():
    atexit.register(print, "a registered function ran")
    threading.Thread(target=work).start()
    main()
cli.main = begin
circle = Circle()
sys.argv = ["graphrag-pipeline", *sys.argv[1:]]
run()
"""


def _end_with_work_left(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _WITH_WORK_LEFT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_command_waits_for_threads_and_registered_functions_and_then_ends_at_once():
    done = _end_with_work_left("--help")
    assert done.returncode == 0, done.stderr
    assert "Usage: graphrag-pipeline" in done.stdout
    assert done.stdout.endswith("the thread has ended\na registered function ran\n")


def test_a_command_that_fails_keeps_its_message_and_its_exit_status(tmp_path: Path):
    failed = _end_with_work_left("status", "--root", str(tmp_path / "nowhere"))
    assert failed.returncode == 1
    assert "nowhere" in failed.stderr
    assert failed.stdout == "the thread has ended\na registered function ran\n"


def test_an_output_that_cannot_be_written_is_told():
    command = [sys.executable, "-m", "graphrag_pipeline", "--version"]
    with Path("/dev/full").open("w") as full:
        failed = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert failed.returncode != 0
    assert "No space left on device" in failed.stderr
