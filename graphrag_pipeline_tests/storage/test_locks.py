"""Readers share a lock on a file, and an exclusive lock is refused while they hold it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_pipeline.storage.locks import hold_alone, hold_for_reading, is_held
from graphrag_pipeline_tests.support.command_line import started

READER = """
import os, signal, sys
from pathlib import Path
from graphrag_pipeline.storage.locks import hold_for_reading
from graphrag_pipeline_tests.support.command_line import started
hold_for_reading(Path(sys.argv[1]))
print("held", flush=True)
signal.pause()
"""


def test_a_file_counts_as_held_until_its_last_reader_is_done(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text("{}")
    assert not is_held(path)
    one, two = hold_for_reading(path), hold_for_reading(path)
    assert one is not None
    assert two is not None
    assert is_held(path)
    os.close(one)
    assert is_held(path)
    os.close(two)
    assert not is_held(path)


def test_the_lock_of_a_killed_reader_is_freed(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text("{}")
    with started([sys.executable, "-c", READER, str(path)], stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "held\n"
        assert is_held(path)
        reader.send_signal(signal.SIGKILL)
        reader.wait(60)
        assert not is_held(path)


def test_a_missing_file_cannot_be_held_and_is_not_held(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        hold_for_reading(tmp_path / "gone")
    with hold_alone(tmp_path / "gone") as is_alone:
        assert is_alone


def test_a_file_that_may_only_be_read_can_be_held(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text("{}")
    path.chmod(0o400)
    descriptor = hold_for_reading(path)
    assert descriptor is not None
    os.close(descriptor)
