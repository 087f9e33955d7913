"""Two damaged files at once, many times: each repair must end without a signal, a foreign error or lasting damage.

    python -m graphrag_pipeline_tests.torture.damage_pairs --pairs 500 --seed 1

A child process repairs one damaged copy of an index after the other, by `verify --repair` and `index` or by `index`
alone. Libraries in C that read a damaged file may end the process, so the parent notes the pair at which the child
ended, and starts another child after it. Every third copy counts as imported, so that no stage can make its files.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.verification import verify_root
from graphrag_pipeline.publishing.candidates import publish
from graphrag_pipeline_tests.support.command_line import environment
from graphrag_pipeline_tests.support.damage import index_files
from graphrag_pipeline_tests.support.roots import CAROL, contract_bytes, make_root, put

KINDS = ("flip", "garble", "cut", "zero", "empty", "remove", "swap")
_N_GARBLED = 16  # bytes: four offsets in a file of Arrow
_BUILT, _IMPORTED = "built", "imported"
_TOWNS = ("Ulm", "Bath", "Nice", "York", "Cork", "Bonn")


@dataclass(frozen=True)
class Pair:
    """One pair of damage, chosen by its seed and number alone."""

    seed: int
    number: int

    @property
    def is_imported(self) -> bool:
        return self.number % 3 == 2

    def damage(self, root: Path) -> str:
        """Damage two files of a root, and return what was done."""
        chance = random.Random(f"{self.seed} {self.number}")
        return "; ".join(_damage(path, paths, chance) for path, paths in self._choose(root, chance))

    def _choose(self, root: Path, chance: random.Random) -> Iterator[tuple[Path, Sequence[Path]]]:
        """Yield two files, each with the files that it may be swapped with; half of the pairs are in one folder."""
        everything = index_files(root)
        inside = everything
        if self.number % 4 < 2:
            parts = sorted({_part_of(root, path) for path in everything})
            chosen = chance.choice([part for part in parts if "/vectors/" in part] if self.number % 4 else parts)
            inside = [path for path in everything if _part_of(root, path) == chosen]
        for path in chance.sample(inside, min(2, len(inside))):
            yield path, [other for other in everything if other.suffix == path.suffix]


def _part_of(root: Path, path: Path) -> str:
    """Return the folder of an index that a file belongs to: a vector table, a table, a kind of arrays."""
    parts = path.relative_to(root).parts
    return "/".join(parts[:4] if parts[:2] == ("snapshots", "vectors") else parts[:-1])


def _damage(path: Path, others: Sequence[Path], chance: random.Random) -> str:
    kind, data = chance.choice(KINDS), path.read_bytes()
    if kind == "remove":
        path.unlink()
        return f"{kind} {path}"
    place = chance.randrange(len(data))
    damaged = {
        "flip": data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :],
        "garble": data[:place] + chance.randbytes(_N_GARBLED) + data[place + _N_GARBLED :],
        "cut": data[:place],
        "zero": bytes(len(data)),
        "empty": b"",
        "swap": chance.choice([other for other in others if other.exists()]).read_bytes(),
    }[kind]
    path.write_bytes(damaged)
    return f"{kind} {path}"


def build_roots(folder: Path) -> None:
    """Make an index whose vectors were changed several times, and the same as if it was imported."""
    root = make_root(folder / _BUILT, CAROL | {f"{town}.txt": f"Anna Berg moved to {town}." for town in _TOWNS})
    run_index(root)
    for number, town in enumerate(_TOWNS[:2]):
        put(root.path, f"{town}.txt", f"Paul Dorn and Anna Berg left {town}, {number} years ago.")
        (root.path / "input" / f"{_TOWNS[number + 3]}.txt").unlink()
        run_index(Root(root.path))
    shutil.copytree(root.path, folder / _IMPORTED)
    imported = Root(folder / _IMPORTED)
    shutil.rmtree(imported.path / "heads")
    shutil.rmtree(imported.path / "tables")
    manifest = imported.snapshots.current_manifest()
    assert manifest
    publish(imported.snapshots, imported.snapshots.write_manifest(replace(manifest, origin="import")))


def repair_pair(pair: Pair, folder: Path) -> str:
    """Damage a copy of a root and repair it; return what stays wrong, "" if nothing."""
    source = folder / (_IMPORTED if pair.is_imported else _BUILT)
    root = folder / "copy"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(source, root)
    done = pair.damage(root)
    print(f"{pair.number}: {done}", flush=True)
    try:
        verify_root(Root(root))
        if pair.is_imported or pair.number % 2:
            verify_root(Root(root), is_repairing=True)
        if pair.is_imported:  # what is lost was named
            return ""
        run_index(Root(root))
        changed = Root(root).open_snapshot().changed_parts()  # nothing can make a part of an older snapshot
        if changed:
            return f"damaged after `index`: {changed}"
        return "" if contract_bytes(Root(root)) == contract_bytes(Root(source)) else "the index is not the same"
    except PipelineError as error:
        return f"refused: {error}"
    except Exception as error:  # a finding: the user would see a traceback
        return f"{type(error).__name__}: {error}"


def run_pairs(folder: Path, numbers: range, seed: int) -> list[str]:
    """Repair each pair in a child process; return what went wrong, by pair."""
    faults: list[str] = []
    log, errors = folder / "log.txt", folder / "errors.txt"
    first = numbers.start
    while first < numbers.stop:
        arguments = ["--seed", str(seed), "--first", str(first), "--pairs", str(numbers.stop - first)]
        command = [sys.executable, "-m", __spec__.name, "--worker", str(folder), *arguments]
        with log.open("w") as out, errors.open("w") as err:
            child = subprocess.run(command, env=environment(), stdout=out, stderr=err, check=False)
        lines = log.read_text().splitlines()
        faults += [line for line in lines if line.startswith("FAULT")]
        if child.returncode == 0:
            break
        started = [line for line in lines if line.partition(":")[0].isdecimal()]
        if not started:
            raise RuntimeError(errors.read_text())
        why = signal.Signals(-child.returncode).name if child.returncode < 0 else f"status {child.returncode}"
        faults.append(f"FAULT {started[-1]}: ended by {why}: {errors.read_text().strip()[-600:]}")
        first = int(started[-1].partition(":")[0]) + 1
    return faults


def _work(folder: Path, numbers: range, seed: int) -> None:
    for number in numbers:
        wrong = repair_pair(Pair(seed, number), folder)
        if wrong:
            print(f"FAULT {number}: {wrong}", flush=True)


def main() -> int:
    """Print what went wrong and counts; return whether anything did."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first pair")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    numbers = range(chosen.first, chosen.first + chosen.pairs)
    if chosen.worker:
        _work(chosen.worker, numbers, chosen.seed)
        return 0
    with tempfile.TemporaryDirectory(prefix="graphrag-pairs-") as temporary:
        build_roots(Path(temporary))
        faults = run_pairs(Path(temporary), numbers, chosen.seed)
    print("\n".join([*faults, f"{chosen.pairs} pairs of damage, {len(faults)} faults (seed {chosen.seed})"]))
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
