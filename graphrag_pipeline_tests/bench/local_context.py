"""Time that local search takes to select its context on a large index, per strategy, against its limits.

Memory is
that of a process which opens the index, selects one context and ends. Before, the files leave the page cache: of a file
that was just written, the kernel counts large parts to the reader that the reader never touched (0.64 GB instead of
0.46). A context is timed with the index open and its files in the page cache again. Before the first one,
every strategy has selected contexts for the same other questions, so that none of them pays for what all use: files
that are mapped, caches, and the searches of LanceDB. Questions name one entity, two, none, or the hub with 50,000
relationships.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.search.local import select_local_context
from graphrag_pipeline.query.selection.strategies import STRATEGIES
from graphrag_pipeline.storage.snapshot_store import EVALUATIONS_FOLDER
from graphrag_pipeline_tests.bench.large_index import HUB, NOUNS, VERBS, name_of
from graphrag_pipeline_tests.bench.measuring import Figure, figures_of, measure_command, measure_module

N_QUESTIONS = 40
N_WARMING = 20
"""Other questions that each strategy gets before any is timed."""


@dataclass(frozen=True)
class SizeLimits:
    """Limits for an index of some size; None is no limit."""

    median_ms: float
    p95_ms: float | None
    memory_gb: float
    cold_s: float | None
    quality_s: float | None


USUAL = SizeLimits(25.0, 60.0, 0.6, 4.0, 30.0)
LARGE = SizeLimits(60.0, None, 3.0, None, None)
"""Limits for a million entities."""


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


def time_contexts(index: GraphIndex, strategy: str, questions: Sequence[str]) -> np.ndarray:
    """Return the milliseconds of each context."""
    settings = index.settings.search("local", strategy=strategy)
    taken = []
    for question in questions:
        started = time.perf_counter()
        select_local_context(index, question, settings)
        taken.append(1000 * (time.perf_counter() - started))
    return np.array(taken)


def leave_page_cache(folder: Path) -> None:
    """Write the files of a folder to disk and drop their pages from the page cache, where the system can do this."""
    if not hasattr(os, "posix_fadvise"):
        return
    for path in filter(Path.is_file, folder.rglob("*")):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


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
    first = measure_module(__name__, str(root), str(n_entities))
    yield Figure("memory after the first context", first.peak_bytes / 1e9, "GB", limits.memory_gb)
    enter_page_cache(root)
    started = time.perf_counter()
    with GraphIndex.open(root) as index:
        time_contexts(index, "balanced", questions[:1])
        yield Figure("local context, the first with opening", time.perf_counter() - started, "s")
        for strategy in STRATEGIES:
            time_contexts(index, strategy, [*ask_about(n_entities, N_WARMING, seed=11), *ask_about_hub()[:1]])
        for strategy in STRATEGIES:
            wall = time_contexts(index, strategy, questions)
            yield Figure(f"local context, {strategy}: median", float(np.median(wall)), "ms", limits.median_ms)
            yield Figure(
                f"local context, {strategy}: 95th percentile", float(np.quantile(wall, 0.95)), "ms", limits.p95_ms
            )
            wall = time_contexts(index, strategy, ask_about_hub())
            yield Figure(
                f"local context of the hub, {strategy}: median", float(np.median(wall)), "ms", limits.median_ms
            )


def run(root: Path, n_entities: int, limits: SizeLimits) -> Iterator[Figure]:
    """Measure a large index."""
    yield from measure_contexts(root, n_entities, limits)
    cold = measure_command(root, "query", "--context-only", ask_about(n_entities)[0])
    yield Figure("cold query --context-only", cold.wall_s, "s", limits.cold_s)
    shutil.rmtree(root / EVALUATIONS_FOLDER, ignore_errors=True)  # figures that were measured are not measured again
    quality = measure_command(root, "evaluate", "--index")
    yield from figures_of("evaluate --index", quality, limits.quality_s, None)


if __name__ == "__main__":  # the process whose memory is measured
    with GraphIndex.open(Path(sys.argv[1])) as opened:
        time_contexts(opened, "balanced", ask_about(int(sys.argv[2]))[:1])
