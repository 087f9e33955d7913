"""A torture run: several threads run commands, and one edits, damages and disturbs between them.

Keep out: what is run (`commands.py`), what is a violation (`oracle.py`), the end (`end.py`).
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path

from graphrag_pipeline_tests.torture.commands import Desk, choose_command, run_command
from graphrag_pipeline_tests.torture.corpus import Corpus
from graphrag_pipeline_tests.torture.damage import damage_file
from graphrag_pipeline_tests.torture.end import check_end, must_run
from graphrag_pipeline_tests.torture.machines import Machine, make_machine
from graphrag_pipeline_tests.torture.oracle import Oracle, Ran
from graphrag_pipeline_tests.torture.stores import TorturedStore, open_store

KINDS = ("local", "file", "s3")
N_MACHINES = 3
INTERFERENCES = {"edit": 6, "damage": 2, "damage store": 1, "store fault": 2, "damage state": 1}
"""What is done between commands -> how often, in relation to the others."""
_REPORT_S = 60.0
_N_RECENT = 25


@dataclass
class Torture:
    """A run: its parts, what was done, what broke a promise."""

    corpus: Corpus
    desk: Desk
    machines: list[Machine]
    store: TorturedStore
    chance: random.Random
    oracle: Oracle
    counts: Counter[str] = field(default_factory=Counter)
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=_N_RECENT))
    n_violations: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def work(self, seconds: float, n_processes: int) -> None:
        """Run commands in several threads for some time, with edits and faults between them."""
        end = time.monotonic() + seconds
        workers = [threading.Thread(target=self._run_commands, args=(end,)) for _ in range(n_processes)]
        for worker in workers:
            worker.start()
        told = time.monotonic()
        while time.monotonic() < end:
            time.sleep(self.chance.uniform(1, 6))
            self._interfere()
            if time.monotonic() - told > _REPORT_S:
                told = time.monotonic()
                print(f"{end - told:.0f} s left, {self.describe()}", flush=True)
        for worker in workers:
            worker.join()
        time.sleep(1)
        self.store.end_fault(is_now=True)

    def describe(self) -> str:
        """Return the number of commands and of violations."""
        n_commands = sum(n for name, n in self.counts.items() if ", " in name)
        return f"{n_commands} commands, {self.n_violations} violations"

    def _run_commands(self, end: float) -> None:
        while time.monotonic() < end:
            with self.lock:
                own = random.Random(self.chance.random())
                machine = own.choice(self.machines)
                command = choose_command(machine, own, self.desk)
            began = time.strftime("%H:%M:%S")
            ran = run_command(machine, command, self.store, own)
            with self.lock:
                self.desk.note_export(ran)
                self.judge(machine, ran, began)

    def judge(self, machine: Machine, ran: Ran, began: str) -> None:
        """Count a command, and report it if it broke a promise."""
        self.counts[f"{_name(ran)}, {_describe_end(ran)}"] += 1
        line = f"{began}-{time.strftime('%H:%M:%S')} {machine.root.name}: {' '.join(ran.arguments)}: {ran.status}"
        self.recent.append(line)
        if violation := self.oracle.find_violation(ran):
            self.report(
                f"{line}: {violation}\n  causes: {sorted(ran.causes)}; {ran.note}\n{ran.err[-4000:]}{ran.out[-500:]}"
            )

    def report(self, text: str) -> None:
        """Print a violation, and the commands before it."""
        self.n_violations += 1
        print(f"VIOLATION {text}\n  before it:\n    " + "\n    ".join(self.recent), flush=True)

    def _interfere(self) -> None:
        with self.lock:
            self.store.end_fault()
            kind = self.chance.choices(list(INTERFERENCES), list(INTERFERENCES.values()))[0]
            what = self._do(kind)
            if what:
                self.counts[kind] += 1
                self.recent.append(f"{time.strftime('%H:%M:%S')} {what}")

    def _do(self, kind: str) -> str | None:
        if kind == "edit":
            return self.corpus.edit()
        if kind == "store fault":
            return self.store.begin_fault(self.chance.uniform(0.5, 6))
        if kind == "damage store":
            return self.store.damage(self.chance)
        if kind == "damage state":
            return self.store.damage_state(self.chance, self.chance.uniform(0.5, 6))
        machine = self.chance.choice(self.machines)
        what = damage_file(machine.root, self.chance)
        if what:
            machine.note_damage(what)
        return what and f"{machine.root.name}: {what}"


def _name(ran: Ran) -> str:
    return " ".join(ran.arguments[: 2 if ran.arguments[0] == "snapshots" else 1])


def _describe_end(ran: Ran) -> str:
    if ran.was_killed:
        return "killed"
    return "done" if ran.status == 0 else "error during a fault" if ran.causes else "error"


def torture(kind: str, folder: Path, seconds: float, seed: int, n_processes: int) -> int:
    """Run one kind in an empty folder; return how many promises were broken."""
    began, chance = time.monotonic(), random.Random(seed)
    with open_store(kind, folder, random.Random(seed)) as store:
        corpus = Corpus(folder / "input", chance)
        desk = Desk(folder, corpus.deleted)
        machines = [
            make_machine(folder / f"machine_{number}", corpus.folder, store.url, store.environment)
            for number in range(1 if kind == "local" else N_MACHINES)
        ]
        own_url = store.url and f"{store.url}/imported"
        machines.append(make_machine(folder / "importer", corpus.folder, own_url, store.environment, is_importer=True))
        tortured = Torture(corpus, desk, machines, store, chance, Oracle(corpus.said))
        must_run(tortured, machines[0], "index")
        desk.note_export(must_run(tortured, machines[0], "export", str(folder / "whole_0")))
        tortured.work(seconds, n_processes)
        check_end(tortured, folder)
    print(f"{kind}: {dict(sorted(tortured.counts.items()))}")
    took = time.monotonic() - began
    print(f"{kind}: {tortured.describe()} (seed {seed}, {seconds:.0f} s, with its end {took:.0f} s)", flush=True)
    return tortured.n_violations
