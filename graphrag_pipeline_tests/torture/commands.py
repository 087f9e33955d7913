"""Random commands of a torture run, how they are run, killed and stopped.

Keep out: what their output may say (`oracle.py`).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from graphrag_pipeline.settings.search_names import CHOOSABLE_METHODS, STRATEGIES
from graphrag_pipeline_tests.support.command_line import environment, program
from graphrag_pipeline_tests.torture.corpus import PEOPLE, PLACES
from graphrag_pipeline_tests.torture.machines import Machine, Weather
from graphrag_pipeline_tests.torture.oracle import Ran

TIMEOUT_S = 600
KILLED_SHARE, STOPPED_SHARE = 0.12, 0.08
LONGEST_KILL_S, LONGEST_STOP_S = 15.0, 8.0


def choose_command(machine: Machine, chance: random.Random, folder: Path, deleted: Sequence[str]) -> list[str]:
    """Return the arguments of a random command.

    Args:
        machine: where it will run; a rollback goes to one of its snapshots.
        folder: where exports go.
        deleted: names of documents that were deleted.
    """
    known = machine.snapshot_ids()
    kinds = ["index"] * 6 + ["query"] * 9 + ["status", "list", "prune", "sql", "sql", "unpin", "export"]
    kind = chance.choice(kinds + ["forget"] * bool(deleted) + ["rollback"] * bool(known))
    if kind == "query":
        question = chance.choice((f"Who lives in {chance.choice(PLACES)}?", f"What did {chance.choice(PEOPLE)} do?"))
        method = chance.choice(CHOOSABLE_METHODS)
        strategy = ["--strategy", chance.choice(STRATEGIES)] if method == "local" else []
        return ["query", "--json", "--method", method, *strategy, question]
    return {
        "index": ["index"],
        "status": ["status"],
        "list": ["snapshots", "list"],
        "prune": ["snapshots", "prune", "--keep", str(chance.randint(1, 3)), "--grace-hours", "0"],
        "sql": ["sql", "SELECT count(*), max(length(text)) FROM text_units"],
        "rollback": ["snapshots", "rollback", chance.choice(known or [""])],
        "unpin": ["snapshots", "unpin"],
        "export": ["export", str(folder / f"export_{chance.randint(1, 3)}")],
        "forget": ["forget", chance.choice(list(deleted) or [""])],
    }[kind]


def run_command(machine: Machine, arguments: Sequence[str], weather: Weather, chance: random.Random) -> Ran:
    """Run a command on a machine, perhaps kill or stop it in between."""
    excused = machine.excuse() or weather.excuse()
    n_damages = len(machine.damage)
    process = subprocess.Popen(
        program("--root", machine.root, *arguments),
        env=environment(**machine.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    was_killed = _disturb(process, chance)
    try:
        out, err = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        err += f"\n(the torture ended it after {TIMEOUT_S} s)"
    if arguments[0] == "index" and process.returncode == 0:
        machine.forget_damage(n_damages)
    excuse = "; ".join(filter(None, {excused, machine.excuse(), weather.excuse()}))
    return Ran(tuple(arguments), process.returncode, out, err, was_killed, excuse)


def _disturb(process: subprocess.Popen[str], chance: random.Random) -> bool:
    """Kill or stop a command at a random moment, or neither; return whether it was killed."""
    fate = chance.random()
    if fate > KILLED_SHARE + STOPPED_SHARE:
        return False
    try:
        process.wait(chance.uniform(0.5, LONGEST_KILL_S))
        return False
    except subprocess.TimeoutExpired:
        pass
    if fate < KILLED_SHARE:
        _signal(process, signal.SIGKILL)
        return True
    _signal(process, signal.SIGSTOP)
    with suppress(subprocess.TimeoutExpired):
        process.wait(chance.uniform(0.5, LONGEST_STOP_S))
    _signal(process, signal.SIGCONT)
    return False


def _signal(process: subprocess.Popen[str], number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
