"""Time that local search takes to select its context on a large index, per strategy, against its limits.

    python -m graphrag_pipeline_tests.bench.local_context [FOLDER] [N_ENTITIES]

The index (`large_index.py`) is made in FOLDER at first use and used again; without FOLDER it is temporary. Memory is
that of a process which opens the index, selects one context and ends. Before, the files leave the page cache: of a file
that was just written, the kernel counts large parts to the reader that the reader never touched (0.64 GB instead of
0.46). A context is timed with the index open and its files in the page cache again. Before the first one,
every strategy has selected contexts for the same other questions, so that none of them pays for what all use: files
that are mapped, caches, and the searches of LanceDB. Questions name one entity, two, none, or the hub with 50,000
relationships. Processor time is shown beside wall time, because other work on the machine disturbs it less. The last
figures compare the local PageRank of `graph` with the full PageRank over all text units. A million entities need 13 GB
of disk and, while the index is made, 15 GB of memory.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.search.local import select_local_context
from graphrag_pipeline.query.selection.graph_ranking import rank_with_graph
from graphrag_pipeline.query.selection.hybrid_ranking import rank_text_units
from graphrag_pipeline.query.selection.local_text_units import N_SEEDS
from graphrag_pipeline.query.selection.pagerank import MAX_UNITS
from graphrag_pipeline.query.selection.strategies import STRATEGIES
from graphrag_pipeline.storage.snapshot_store import EVALUATIONS_FOLDER
from graphrag_pipeline_tests.bench.large_index import HUB, LARGE_FROM, NOUNS, VERBS, Shape, name_of
from graphrag_pipeline_tests.bench.measuring import Figure, measure_command, measure_module

N_QUESTIONS = 40
N_WARMING = 20
"""Other questions that each strategy gets before any is timed."""
N_FULL_WALKS = 8
RECALL_AT = (5, 10, 20)
_FIRST = "--first-context"
"""Argument of the process whose memory is measured."""


@dataclass(frozen=True)
class SizeLimits:
    """Limits for an index of some size; None is no limit."""

    median_ms: float
    p95_ms: float | None
    memory_gb: float
    cold_s: float | None


USUAL = SizeLimits(25.0, 60.0, 0.6, 4.0)
LARGE = SizeLimits(60.0, None, 3.0, None)
"""Limits for a million entities."""
LONGEST_QUALITY_S = 30.0
"""Seconds of `evaluate --index` with 100,000 entities."""


def ask_about(n_entities: int, n: int = N_QUESTIONS, seed: int = 3) -> list[str]:
    """Return questions about random entities, in turn with one, two and no name; hardly any is asked twice."""
    random = np.random.default_rng(seed)
    rows = random.integers(1, n_entities, (n, 2)).tolist()
    words = zip(random.choice(VERBS, n), *random.choice(NOUNS, (3, n)), strict=True)
    shapes = (
        "Whom did {} marry?",
        "What did {} and {} do at the festival?",
        "who {} at the {} and the {} after the {}?",
    )
    return [
        shapes[i % 3].format(*(chosen if i % 3 == 2 else map(name_of, pair)))
        for i, (pair, chosen) in enumerate(zip(rows, words, strict=True))
    ]


def ask_about_hub() -> list[str]:
    """Questions about the hub."""
    return [f"Whom did {name_of(HUB)} {verb}?" for verb in ("marry", "meet", "teach", "visit", "follow")]


def time_contexts(index: GraphIndex, strategy: str, questions: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the milliseconds of each context: wall time and processor time."""
    settings = index.settings.search("local", strategy=strategy)
    taken = []
    for question in questions:
        started = time.perf_counter(), time.process_time()
        select_local_context(index, question, settings)
        taken.append((time.perf_counter() - started[0], time.process_time() - started[1]))
    wall, cpu = 1000 * np.array(taken).T
    return wall, cpu


def leave_page_cache(folder: Path) -> None:
    """Write the files of a folder to disk and drop their pages from the page cache, where the system can do this."""
    if not hasattr(os, "posix_fadvise"):
        return
    for path in filter(Path.is_file, folder.rglob("*")):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def select_first_context(root: Path, n_entities: int) -> None:
    """Open an index and select one context: what the process whose memory is measured does."""
    with GraphIndex.open(root) as index:
        time_contexts(index, "balanced", ask_about(n_entities)[:1])


def enter_page_cache(folder: Path) -> None:
    """Read the files of a folder, so that they are in the page cache again."""
    for path in filter(Path.is_file, folder.rglob("*")):
        with path.open("rb") as file:
            while file.read(1 << 24):
                pass


def measure_contexts(root: Path, n_entities: int, limits: SizeLimits) -> Iterator[Figure]:
    """Figures of every strategy, and of opening."""
    questions = ask_about(n_entities)
    leave_page_cache(root)
    first = measure_module("graphrag_pipeline_tests.bench.local_context", _FIRST, str(root), str(n_entities))
    yield Figure("memory after the first context", first.peak_bytes / 1e9, "GB", limits.memory_gb)
    enter_page_cache(root)
    started = time.perf_counter()
    with GraphIndex.open(root) as index:
        time_contexts(index, "balanced", questions[:1])
        yield Figure("local context, the first with opening", time.perf_counter() - started, "s")
        for strategy in STRATEGIES:
            time_contexts(index, strategy, [*ask_about(n_entities, N_WARMING, seed=11), *ask_about_hub()[:1]])
        for strategy in STRATEGIES:
            wall, cpu = time_contexts(index, strategy, questions)
            yield Figure(f"local context, {strategy}: median", float(np.median(wall)), "ms", limits.median_ms)
            yield Figure(f"local context, {strategy}: processor, median", float(np.median(cpu)), "ms")
            yield Figure(
                f"local context, {strategy}: 95th percentile", float(np.quantile(wall, 0.95)), "ms", limits.p95_ms
            )
            wall, _ = time_contexts(index, strategy, ask_about_hub())
            yield Figure(
                f"local context of the hub, {strategy}: median", float(np.median(wall)), "ms", limits.median_ms
            )
        yield from measure_walk(index, questions)


def measure_walk(index: GraphIndex, questions: Sequence[str]) -> Iterator[Figure]:
    """Return the share of the full PageRank's first text units that the local PageRank ranks first too."""
    named = [question for question in questions if index.names.take_apart(question).names][:N_FULL_WALKS]
    shares = []
    for question in [*named, ask_about_hub()[0]]:
        ranked = rank_text_units(index, question, N_SEEDS)
        rows = index.snapshot.rows_of("text_units", [unit_id for unit_id, _ in ranked]).tolist()
        found = list(zip(rows, [score for _, score in ranked], strict=True))
        apart = index.names.take_apart(question)
        local, full = (rank_with_graph(index, apart, found, n)[0].tolist() for n in (MAX_UNITS, None))
        shares.append([len({*local[:k]} & {*full[:k]}) / k for k in RECALL_AT])
    for k, share in zip(RECALL_AT, np.mean(shares, axis=0).tolist(), strict=True):
        yield Figure(f"graph: of the full walk's first {k} found by the local walk", share, "", least=0.95)


def run(folder: Path | None = None, n_entities: int = Shape.n_entities) -> Iterator[Figure]:
    """Publish the index if the folder has none, and measure it."""
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            yield from run(Path(temporary) / "root", n_entities)
        return
    if not (folder / "snapshots" / "current.json").exists():
        measure_module("graphrag_pipeline_tests.bench.large_index", str(folder), str(n_entities))
    limits = LARGE if n_entities >= LARGE_FROM else USUAL
    yield from measure_contexts(folder, n_entities, limits)
    cold = measure_command(folder, "query", "--context-only", ask_about(n_entities)[0])
    yield Figure("cold query --context-only", cold.wall_s, "s", limits.cold_s)
    yield Figure("cold query --context-only: processor", cold.cpu_s, "s")
    shutil.rmtree(folder / EVALUATIONS_FOLDER, ignore_errors=True)  # figures that were measured are not measured again
    quality = measure_command(folder, "evaluate", "--index")
    yield Figure("evaluate --index", quality.wall_s, "s", LONGEST_QUALITY_S if limits is USUAL else None)
    yield Figure("evaluate --index: processor", quality.cpu_s, "s")
    yield Figure("evaluate --index: peak memory", quality.peak_bytes / 1e9, "GB")


def main(arguments: Sequence[str]) -> int:
    """Print every row; 1 if a figure is over its limit."""
    if arguments[:1] == [_FIRST]:
        select_first_context(Path(arguments[1]), int(arguments[2]))
        return 0
    folder = Path(arguments[0]) if arguments else None
    figures = []
    for figure in run(folder, *map(int, arguments[1:2])):
        print(figure.to_row(), flush=True)
        figures.append(figure)
    return int(any(figure.is_over for figure in figures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
