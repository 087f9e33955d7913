"""The end of a torture run: what every machine must have when all faults are over.

Keep out: the comparison of two roots (`comparison.py`).
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline_tests.support.command_line import run
from graphrag_pipeline_tests.torture.comparison import find_difference
from graphrag_pipeline_tests.torture.machines import Machine, make_machine
from graphrag_pipeline_tests.torture.oracle import Ran

if TYPE_CHECKING:
    from graphrag_pipeline_tests.torture.run import Torture

QUESTION = "Who lives in Thornby?"


def check_end(tortured: Torture, folder: Path) -> None:
    """Index without faults; compare all machines, and one that joins now, with a root made from nothing."""
    writers = [machine for machine in tortured.machines if not machine.is_importer]
    if tortured.store.url:
        writers.append(_join(tortured, folder / "joined"))
    for machine in writers:
        must_run(tortured, machine, "snapshots", "unpin")
        must_run(tortured, machine, "index", "--allow-removal")
    must_run(tortured, writers[0], "index", "--recluster")
    must_run(tortured, writers[0], "snapshots", "prune", "--keep", "1", "--grace-hours", "0")
    if tortured.store.url:
        writers.append(_join(tortured, folder / "reader"))
    fresh = make_machine(folder / "fresh", tortured.corpus.folder, "", {})
    must_run(tortured, fresh, "index")
    for machine in writers:
        _check_machine(tortured, machine, fresh)
    for machine in tortured.machines:
        if machine.is_importer and tortured.desk.exports:
            must_run(tortured, machine, "import", str(tortured.desk.exports[-1]))
            must_run(tortured, machine, "query", "--json", "--method", "basic", QUESTION)


def _check_machine(tortured: Torture, machine: Machine, fresh: Machine) -> None:
    must_run(tortured, machine, "query", "--json", "--method", "local", QUESTION)
    status = must_run(tortured, machine, "status", "--json")
    must_run(tortured, machine, "verify")
    if status.status == 0 and json.loads(status.out)["stale"]:
        tortured.report(f"{machine.root.name}: stale after an index: {json.loads(status.out)['stale']}")
    if difference := find_difference(machine.root, fresh.root):
        tortured.report(f"{machine.root.name}: differs from a rebuild: {difference}")


def _join(tortured: Torture, root: Path) -> Machine:
    """Return a machine that has nothing yet."""
    return make_machine(root, tortured.corpus.folder, tortured.store.url, tortured.store.environment)


def must_run(tortured: Torture, machine: Machine, *arguments: str) -> Ran:
    """Run a command to which no fault happens: it must succeed."""
    began = time.strftime("%H:%M:%S")
    done = run("--root", machine.root, *arguments, changes=machine.environment)
    ran = Ran(arguments, done.returncode, done.stdout, done.stderr)
    tortured.judge(machine, ran, began)
    if ran.status != 0 and not tortured.oracle.find_violation(ran):
        tortured.report(f"{machine.root.name}: {' '.join(arguments)}: an error without a fault\n{ran.err[-2000:]}")
    return ran
