"""Random commands of several processes and machines, with kills, stops, damage and faults of the store between them.

    python -m graphrag_pipeline_tests.torture [--kind local|file|s3] [--seconds 120] [--seed 1] [--processes 3]

`make torture SECONDS=... SEED=...` runs all three kinds. The seed chooses what is done; when a process gets its turn is
up to the system. A run ends with `index --recluster` without faults: all machines must publish the tables that a root
made from nothing has. Exit status 1 if a promise was broken; each violation is printed with its command.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline_tests.support.command_line import run
from graphrag_pipeline_tests.support.object_server import BUCKET, ObjectServer, running_object_server
from graphrag_pipeline_tests.torture.commands import choose_command, run_command
from graphrag_pipeline_tests.torture.corpus import Corpus
from graphrag_pipeline_tests.torture.damage import damage_file
from graphrag_pipeline_tests.torture.machines import Machine, Weather, make_machines
from graphrag_pipeline_tests.torture.oracle import Ran, find_violation

KINDS = ("local", "file", "s3")
N_MACHINES = 3
FAULTY_SHARE = 0.5
"""Share of requests that fail during a fault of the store."""


@dataclass
class Torture:
    """A run: its parts, what was done, what broke a promise."""

    corpus: Corpus
    machines: list[Machine]
    weather: Weather
    chance: random.Random
    folder: Path
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def work(self, seconds: float, n_processes: int, with_store_faults: bool) -> None:
        """Run commands in several threads for some time, with edits and faults between them."""
        end = time.monotonic() + seconds
        workers = [threading.Thread(target=self._run_commands, args=(end,)) for _ in range(n_processes)]
        for worker in workers:
            worker.start()
        while time.monotonic() < end:
            time.sleep(self.chance.uniform(1, 6))
            self._interfere(with_store_faults)
        for worker in workers:
            worker.join()

    def _run_commands(self, end: float) -> None:
        while time.monotonic() < end:
            with self.lock:
                own = random.Random(self.chance.random())
            machine = own.choice(self.machines)
            command = choose_command(machine, own, self.folder, self.corpus.deleted)
            ran = run_command(machine, command, self.weather, own)
            with self.lock:
                self.counts[f"{ran.arguments[0]}, {_describe_end(ran)}"] += 1
                if violation := find_violation(ran, self.corpus.said):
                    self._report(machine, ran, violation)

    def _interfere(self, with_store_faults: bool) -> None:
        with self.lock:
            kind = self.chance.choice(("edit", "edit", "edit", "damage", "weather"))
            if kind == "edit":
                self.corpus.edit()
            elif kind == "damage":
                machine = self.chance.choice(self.machines)
                if what := damage_file(machine.root, self.chance):
                    machine.note_damage(what)
            elif with_store_faults:
                self.weather.begin(self.chance.uniform(0.5, 4))
            self.counts[kind] += 1

    def _report(self, machine: Machine, ran: Ran, violation: str) -> None:
        command = " ".join(ran.arguments)
        text = f"{machine.root.name}: {command}: {violation}\n  fault: {ran.excuse or 'none'}\n{ran.err[-3000:]}"
        self.violations.append(text)
        print(f"VIOLATION {text}", flush=True)

    def check_end(self) -> None:
        """Index without faults, and compare the tables of every machine with those of a root made from nothing."""
        for machine in self.machines:
            self.must_run(machine, "snapshots", "unpin")
            self.must_run(machine, "index")
        self.must_run(self.machines[0], "index", "--recluster")
        fresh = make_machines(self.folder / "fresh", 1, self.corpus.folder, "", {})[0]
        self.must_run(fresh, "index")
        expected = _tables_of(fresh)
        for machine in self.machines:
            self.must_run(machine, "query", "--json", "Who lives in Thornby?")
            if _tables_of(machine) != expected:
                self.violations.append(f"{machine.root.name}: tables differ from those of a rebuild")
                print(f"VIOLATION {self.violations[-1]}", flush=True)

    def must_run(self, machine: Machine, *arguments: str) -> None:
        """Run a command to which no fault happens."""
        done = run("--root", machine.root, *arguments, changes=machine.environment)
        ran = Ran(arguments, done.returncode, done.stdout, done.stderr)
        is_wrong = find_violation(ran, self.corpus.said) or (arguments[1:] != ("unpin",) and ran.status != 0)
        if is_wrong:
            self._report(machine, ran, f"without a fault: {is_wrong}")


def _tables_of(machine: Machine) -> dict[str, str]:
    """Return the content-named file of each published contract table."""
    manifest = SnapshotStore(machine.root).current_manifest()
    return {name: entry["file"] for name, entry in manifest.tables.items()} if manifest else {}


def _describe_end(ran: Ran) -> str:
    if ran.was_killed:
        return "killed"
    return "done" if ran.status == 0 else "error during a fault" if ran.excuse else "error"


@contextmanager
def _store_of(
    kind: str, folder: Path, weather: Weather, chance: random.Random
) -> Iterator[tuple[str, ObjectServer | None]]:
    """Yield the URL of an empty store of a kind, "" for none; an S3 server fails while the weather is bad."""
    if kind != "s3":
        yield (f"file://{folder / 'store'}" if kind == "file" else ""), None
        return
    with running_object_server() as server:
        server.fault = lambda method, path: 500 if weather.is_bad() and chance.random() < FAULTY_SHARE else None
        yield f"s3://{BUCKET}/index", server


def torture(kind: str, seconds: float, seed: int, n_processes: int) -> int:
    """Run one kind; return how many promises were broken."""
    chance, weather = random.Random(seed), Weather()
    with tempfile.TemporaryDirectory(prefix="graphrag-torture-") as temporary:
        folder = Path(temporary)
        with _store_of(kind, folder, weather, random.Random(seed)) as (url, server):
            corpus = Corpus(folder / "input", chance)
            n_machines = 1 if kind == "local" else N_MACHINES
            more = server.environment if server else {}
            machines = make_machines(folder, n_machines, corpus.folder, url, more)
            tortured = Torture(corpus, machines, weather, chance, folder)
            tortured.must_run(machines[0], "index")
            tortured.work(seconds, n_processes, with_store_faults=kind == "s3")
            tortured.check_end()
    print(f"{kind}: {dict(sorted(tortured.counts.items()))}")
    print(f"{kind}: {len(tortured.violations)} violations (seed {seed}, {seconds:.0f} s)", flush=True)
    return len(tortured.violations)


def main() -> int:
    """Run the kinds that are asked for."""
    parser = argparse.ArgumentParser(prog="graphrag_pipeline_tests.torture", description=__doc__)
    parser.add_argument("--kind", choices=KINDS, action="append", help="where the index lies; default: all in turn")
    parser.add_argument("--seconds", type=float, default=120, help="of random commands, for each kind")
    parser.add_argument("--seed", type=int, default=1, help="what is done, in which order")
    parser.add_argument("--processes", type=int, default=3, help="commands at a time")
    arguments = parser.parse_args()
    n_broken = [
        torture(kind, arguments.seconds, arguments.seed, arguments.processes) for kind in arguments.kind or KINDS
    ]
    return int(any(n_broken))


if __name__ == "__main__":
    sys.exit(main())
