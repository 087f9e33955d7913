"""Readers during publishing and pruning: every answer comes wholly from one snapshot."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from graphrag_pipeline.pipeline.retention import prune
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.support.command_line import environment
from graphrag_pipeline_tests.support.dagster.live_dagster import wait_until
from graphrag_pipeline_tests.support.machines import index
from graphrag_pipeline_tests.support.roots import CAROL, make_root, put
from graphrag_pipeline_tests.support.thoroughness import repetitions

N_EDITIONS = repetitions(3, thorough=8)
READER = """
import json, re, sys
from pathlib import Path
from graphrag_pipeline import GraphIndex

stop, ready = map(Path, sys.argv[2:])
answers, is_last = [], False
while not is_last:
    is_last = stop.exists()  # then one more round, which reads the last edition
    with GraphIndex.open(sys.argv[1]) as index:
        for method in ("local", "basic", "global"):
            result = index.search("Which edition does Scrooge's register have?", method)
            shown = json.dumps(result.to_dict())
            answers.append([result.snapshot, sorted(set(re.findall(r"edition (\\d+)", shown)))])
    ready.touch()
print(json.dumps(answers))
"""


def write_edition(root: Root, edition: int) -> str:
    """Return documents that name their edition, so that a snapshot has one edition and a mixture two."""
    for name, text in CAROL.items():
        put(root.path, name, f"{text} Scrooge's register says that {name} is edition {edition}.")
    index(root)
    return root.snapshots.current() or ""


def test_two_readers_and_a_writer(tmp_path: Path) -> None:
    root, stop = make_root(tmp_path / "root"), tmp_path / "stop"
    editions = {write_edition(root, 1): "1"}
    program = [sys.executable, "-c", textwrap.dedent(READER), str(root.path), str(stop)]
    ready = [tmp_path / "first", tmp_path / "second"]
    readers = [
        subprocess.Popen([*program, one], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
        for one in ready
    ]
    try:
        wait_until(lambda: all(one.exists() for one in ready) or any(one.poll() is not None for one in readers), 120)
        for edition in range(2, N_EDITIONS + 1):
            editions[write_edition(root, edition)] = str(edition)
            prune(root, 1, time.time(), False)
    finally:
        stop.touch()
    answers = []
    for reader in readers:
        printed, complaints = reader.communicate(timeout=120)
        assert reader.returncode == 0, complaints
        answers += json.loads(printed)
    assert len({snapshot for snapshot, _ in answers}) > 1, "the readers saw only one snapshot"
    assert all(found in ([], [editions[snapshot]]) for snapshot, found in answers)
    assert any(found for _, found in answers)
