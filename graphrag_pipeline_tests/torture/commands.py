"""Random commands of a torture run, how they are run, killed, stopped, and kept from writing as by a full disk.

Keep out: what their output may say (`oracle.py`).
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from graphrag_pipeline.settings.search_names import CHOOSABLE_METHODS, STRATEGIES
from graphrag_pipeline_tests.support.command_line import TIMEOUT_S, environment, program
from graphrag_pipeline_tests.torture.corpus import PEOPLE, PLACES
from graphrag_pipeline_tests.torture.documented import CUT_FILE, DAMAGED_FILE, DAMAGED_OBJECT, FULL_DISK, STORE_FAULT
from graphrag_pipeline_tests.torture.machines import LEASE_S, SNAPSHOT_ID, Machine
from graphrag_pipeline_tests.torture.oracle import Ran
from graphrag_pipeline_tests.torture.stores import TorturedStore

ABORT_S = 20
KILLED_SHARE, STOPPED_SHARE, FULL_DISK_SHARE = 0.12, 0.08, 0.08
KILLED, STOPPED = "killed", "stopped"
LONGEST_KILL_S, LONGEST_STOP_S = 15.0, 2.5 * LEASE_S
QUESTIONS = (*(f"Who lives in {place}?" for place in PLACES), *(f"What did {person} do?" for person in PEOPLE))
SQL = "SELECT count(*), max(length(text)) FROM text_units"
MENDING = ("index", "import")
"""Commands that mend damage to the files of their machine, so damage before them is no reason for their errors."""
READ_PUBLISHED = ("query", "batch", "sql", "trace", "export", "status", "costs", "merges", "evaluate")
"""Commands that read the published snapshot alone, unless they name another one."""


@dataclass
class Desk:
    """What commands read and write outside roots.

    Attributes:
        folder: for exports and questions.
        deleted: names of documents that were deleted.
        exports: whole exports that are not written any more.
    """

    folder: Path
    deleted: Sequence[str]
    exports: list[Path] = field(default_factory=list)
    n_exports: int = 0

    def __post_init__(self) -> None:
        self.questions = self.folder / "questions.txt"
        self.questions.write_text("\n".join(QUESTIONS[::3]), encoding="utf-8")

    def name_export(self, chance: random.Random) -> Path:
        """Return a folder for an export: one of three that are replaced, or a new one."""
        self.n_exports += 1
        return self.folder / chance.choice((f"export_{chance.randint(1, 3)}", f"whole_{self.n_exports}"))

    def note_export(self, ran: Ran) -> None:
        """Remember an export that succeeded, if no other command replaces it."""
        if (
            ran.arguments[0] == "export"
            and len(ran.arguments) == 2
            and ran.status == 0
            and "whole_" in ran.arguments[1]
        ):
            self.exports.append(Path(ran.arguments[1]))


def choose_command(machine: Machine, chance: random.Random, desk: Desk) -> list[str]:
    """Return the arguments of a random command for a machine."""
    makers = [make for make, weight in _weights(machine, desk) for _ in range(weight)]
    return chance.choice(makers)(machine, chance, desk)


_Maker = Callable[[Machine, random.Random, Desk], list[str]]


def _weights(machine: Machine, desk: Desk) -> Iterator[tuple[_Maker, int]]:
    has_snapshots = bool(machine.snapshot_ids())
    yield from ((_query, 12), (_fixed, 11), (_prune, 2), (_export, 2), (_verify_store, 1 * machine.has_store))
    yield from ((_rollback, 2 * has_snapshots), (_show, 1 * has_snapshots), (_diff, 1 * has_snapshots))
    if machine.is_importer:
        yield _import, 6
    else:
        yield from ((_index, 9), (_forget, 2 * bool(desk.deleted)))


def _index(machine: Machine, chance: random.Random, desk: Desk) -> list[str]:
    return ["index", *chance.choice(([], [], ["--allow-removal"], ["--allow-removal"], ["--recluster"]))]


def _import(machine: Machine, chance: random.Random, desk: Desk) -> list[str]:
    return ["import", str(chance.choice(desk.exports))]


def _forget(machine: Machine, chance: random.Random, desk: Desk) -> list[str]:
    return ["forget", *chance.choice(([], [], ["--pruned", "--yes"])), chance.choice(list(desk.deleted))]


def _verify_store(machine: Machine, chance: random.Random, desk: Desk) -> list[str]:
    return ["verify", "--store", *chance.choice(([], ["--repair"]))]


def _rollback(machine: Machine, chance: random.Random, desk: Desk) -> list[str]:
    return ["snapshots", "rollback", _snapshot(machine, chance)]


def _show(machine: Machine, chance: random.Random, desk: Desk) -> list[str]:
    return ["snapshots", "show", _snapshot(machine, chance)]


def _query(machine: Machine, chance: random.Random, desk: Desk) -> list[str]:
    method = chance.choice(CHOOSABLE_METHODS)
    strategy = ["--strategy", chance.choice(STRATEGIES)] if method == "local" else []
    known = machine.snapshot_ids() if chance.random() < 0.25 else []
    snapshot = ["--snapshot", chance.choice(known)] if known else []
    return ["query", "--json", "--method", method, *strategy, *snapshot, chance.choice(QUESTIONS)]


def _fixed(machine: Machine, chance: random.Random, desk: Desk) -> list[str]:
    return chance.choice(
        (
            ["batch", str(desk.questions)],
            ["status"],
            ["status", "--json"],
            ["snapshots", "list"],
            ["snapshots", "unpin"],
            ["snapshots", "unpin"],
            ["sql", SQL],
            ["trace", f"Sources:{chance.randrange(9)}"],
            ["verify"],
            ["verify", "--repair"],
            ["verify", "--repair"],
            ["costs"],
            ["merges"],
            ["index", "--dry-run"],
            ["evaluate", "--index"],
            ["try", "descriptions", "--sample", "2"],
            ["tune", "list"],
        )
    )


def _prune(machine: Machine, chance: random.Random, desk: Desk) -> list[str]:
    dry = ["--dry-run"] if chance.random() < 0.2 else []
    return ["snapshots", "prune", "--keep", str(chance.randint(1, 3)), "--grace-hours", "0", *dry]


def _export(machine: Machine, chance: random.Random, desk: Desk) -> list[str]:
    folder, format = desk.name_export(chance), chance.choice(("graphrag", "graphrag", "graphml", "csv"))
    if format == "graphrag":
        return ["export", str(folder)]
    return ["export", str(folder.with_name(f"{folder.name}_{format}")), "--format", format]


def _diff(machine: Machine, chance: random.Random, desk: Desk) -> list[str]:
    return ["snapshots", "diff", _snapshot(machine, chance), _snapshot(machine, chance)]


def _snapshot(machine: Machine, chance: random.Random) -> str:
    return chance.choice(machine.snapshot_ids() or ["0" * 16])


# -------------------------------------------------------------------------------------------------------------- running


def run_command(machine: Machine, arguments: Sequence[str], store: TorturedStore, chance: random.Random) -> Ran:
    """Run a command on a machine, perhaps kill or stop it in between, or fill its disk."""
    began, n_damages, damage = time.monotonic(), machine.n_damages, list(machine.damage)
    older_damage = list(machine.older_damage)
    process = subprocess.Popen(
        program("--root", machine.root, *arguments),
        env=environment(PYTHONFAULTHANDLER="1", **machine.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    fate = _disturb(process, chance)
    try:
        out, err = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGABRT)  # it prints what each thread does
        with suppress(subprocess.TimeoutExpired):
            process.wait(ABORT_S)
        _signal(process, signal.SIGKILL)
        out, err = process.communicate()
        err += f"\n(the torture ended it after {TIMEOUT_S} s)"
    is_mending = arguments[0] in MENDING and "--dry-run" not in arguments
    if is_mending and process.returncode == 0:
        machine.forget_damage(n_damages, is_import=arguments[0] == "import")
    reads_older = arguments[0] not in READ_PUBLISHED or any(map(SNAPSHOT_ID.fullmatch, arguments))
    damage += older_damage if reads_older else []
    is_damaged = machine.n_damages > n_damages or (bool(damage) and not is_mending)
    causes = {
        DAMAGED_FILE: is_damaged,
        CUT_FILE: machine.was_cut_since(n_damages),
        DAMAGED_OBJECT: store.is_damaged and not is_mending,
        STORE_FAULT: store.failed_since(began),
        FULL_DISK: fate == FULL_DISK,
    }
    present = frozenset(cause for cause, is_present in causes.items() if is_present)
    return Ran(tuple(arguments), process.returncode, out, err, fate == KILLED, present, "; ".join(damage))


def _disturb(process: subprocess.Popen[str], chance: random.Random) -> str:
    """Kill or stop a command at a random moment, or fill its disk; return what was done, "" for nothing."""
    shares = (KILLED_SHARE, STOPPED_SHARE, FULL_DISK_SHARE)
    [fate] = chance.choices((KILLED, STOPPED, FULL_DISK, ""), (*shares, 1 - sum(shares)))
    if not fate:
        return fate
    with suppress(subprocess.TimeoutExpired):
        process.wait(chance.uniform(0.5, LONGEST_KILL_S))
        return ""
    if fate == KILLED:
        _signal(process, signal.SIGKILL)
    elif fate == FULL_DISK:
        return FULL_DISK if fill_disk(process.pid) else ""
    else:
        _signal(process, signal.SIGSTOP)
        with suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0.5, LONGEST_STOP_S))
        _signal(process, signal.SIGCONT)
    return fate


def fill_disk(pid: int) -> bool:
    """Let every further write of a process to a file fail, as on a full disk; return whether the system can do so.

    No place is taken from the disk of this machine, and no rights are needed. Python ignores the signal that comes with
    the error, for itself and the processes that it starts.
    """
    if not hasattr(resource, "prlimit"):  # systems other than Linux
        return False
    with suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]))
    return True


def _signal(process: subprocess.Popen[str], number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
