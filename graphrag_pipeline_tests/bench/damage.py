"""Random damage to an index: flipped bits and cuts, one at a time before questions, many at a time before an `index`.

    python -m graphrag_pipeline_tests.bench.damage --flips 10000 --cuts 1000 --seed 1

Each flip or cut is made in a file of the index, all methods answer, and it is undone. An answer must be the one of the
whole index, or an error with an address. After every `--batch` of them, as many are made again at once, and one `index`
runs: afterwards all answers must be the same and every file whole.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.verification import verify_root
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.support.damage import cut, flip_bit, index_files
from graphrag_pipeline_tests.support.roots import make_root

QUESTION = "Who is Bob Cratchit, and whom does Scrooge love?"
METHODS = ("basic", "local", "global", "drift", "lazy")
_KINDS = ("heads", "tables", "snapshots/tables", "snapshots/adjacency", "snapshots/sentences", "snapshots/vectors")


@dataclass
class DamageFigures:
    """Counts of what damage did; `silent`, `raw` and `lasting` name what must not happen."""

    outcomes: Counter[str] = field(default_factory=Counter)
    silent: list[str] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    lasting: list[str] = field(default_factory=list)
    n_index_runs: int = 0
    most_files_at_once: int = 0
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        return not (self.silent or self.raw or self.lasting)


@dataclass(frozen=True)
class Damage:
    """A flipped bit, or a cut to `place` bytes, of one file."""

    path: Path
    place: int
    is_cut: bool

    def make(self) -> None:
        """Damage the file, unless it is shorter by now."""
        if not self.path.exists() or self.path.stat().st_size <= self.place // (1 if self.is_cut else 8):
            return
        cut(self.path, self.place) if self.is_cut else flip_bit(self.path, self.place)

    def __str__(self) -> str:
        return f"{self.path}: {'cut to byte' if self.is_cut else 'bit'} {self.place}"


def choose_damage(root: Path, numbers: random.Random, is_cut: bool) -> Damage:
    """Choose a kind of file, then a file of it, then a place, so that small files are damaged as often as large."""
    paths: list[Path] = []
    while not paths:
        kind = numbers.choice((*_KINDS, "."))
        paths = index_files(root, [kind]) if kind != "." else sorted((root / "snapshots").glob("*.*"))
    path = numbers.choice(paths)
    return Damage(path, numbers.randrange(path.stat().st_size * (1 if is_cut else 8)), is_cut)


def answer_all(root: Path) -> dict[str, str]:
    """Return answer and context of each method."""
    with GraphIndex.open(root) as index:
        found = {method: index.search(QUESTION, method) for method in METHODS}
        return {method: f"{result.answer}\n{result.context}" for method, result in found.items()}


def try_damage(damage: Damage, root: Path, whole: dict[str, str], figures: DamageFigures) -> None:
    """Damage a file, ask all methods, and undo it."""
    content = damage.path.read_bytes()
    damage.make()
    try:
        answers = answer_all(root)
        changed = [method for method in METHODS if answers[method] != whole[method]]
        figures.outcomes["same answers"] += not changed
        figures.silent += [f"{damage}: {', '.join(changed)}"] if changed else []
    except PipelineError:
        figures.outcomes["refused by name"] += 1
    except Exception as error:  # any other error is a finding
        figures.raw.append(f"{damage}: {type(error).__name__}: {error}")
    finally:
        damage.path.write_bytes(content)


def repair_at_once(batch: list[Damage], root: Path, whole: dict[str, str], figures: DamageFigures) -> None:
    """Make all damage of a batch at once, and index."""
    for damage in batch:
        damage.make()
    figures.n_index_runs += 1
    figures.most_files_at_once = max(figures.most_files_at_once, len({damage.path for damage in batch}))
    try:
        run_index(Root(root))
        answers, rest = answer_all(root), verify_root(Root(root)).findings
    except Exception as error:
        figures.lasting.append(f"index after {len(batch)}: {type(error).__name__}: {error}")
        return
    figures.lasting += [f"{method} differs after repair" for method in METHODS if answers[method] != whole[method]]
    figures.lasting += [f"{finding.path}: {finding.outcome}" for finding in rest]


def measure_damage(root: Path, n_flips: int, n_cuts: int, batch_size: int, seed: int) -> DamageFigures:
    """Try random damage on an indexed root; its files are whole afterwards unless `lasting` says otherwise."""
    numbers, figures, started = random.Random(seed), DamageFigures(), time.perf_counter()
    whole = answer_all(root)
    kinds = [False] * n_flips + [True] * n_cuts
    numbers.shuffle(kinds)
    for start in range(0, len(kinds), batch_size):
        batch = []
        for is_cut in kinds[start : start + batch_size]:
            batch.append(choose_damage(root, numbers, is_cut))
            try_damage(batch[-1], root, whole, figures)
        repair_at_once(batch, root, whole, figures)
        figures.seconds = time.perf_counter() - started
        print(json.dumps(vars(figures), default=str), flush=True)
    return figures


def main() -> None:
    """Measure damage to a small index, or to a copy of one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--cuts", type=int, default=1_000)
    parser.add_argument("--batch", type=int, default=250, help="damage at once before an index")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = make_root(Path(folder) / "root")
        run_index(root)
        figures = measure_damage(root.path, options.flips, options.cuts, options.batch, options.seed)
    raise SystemExit(not figures.is_clean)


if __name__ == "__main__":
    main()
