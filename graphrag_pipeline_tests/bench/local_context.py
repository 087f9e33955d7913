"""How fast local search selects its context on a large index, strategy by strategy, against issue 5's limits.

    python -m graphrag_pipeline_tests.bench.local_context [FOLDER] [N_ENTITIES]

The index (`large_index.py`) is made in FOLDER at first use and used again; without it it is temporary. A context is
timed with the index open, after a few questions; questions name one entity, two, none, or the hub with a tenth of all
relationships.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from graphrag_pipeline.query.graph_index import GraphIndex
from graphrag_pipeline.query.local_search import select_local_context
from graphrag_pipeline.query.selection import STRATEGIES
from graphrag_pipeline_tests.bench.large_index import HUB, Shape, name_of, publish_large_index
from graphrag_pipeline_tests.bench.measuring import Figure, measure_command

N_QUESTIONS = 40
MEDIAN_MS, P95_MS = 25.0, 60.0
MEMORY_GB, COLD_S = 0.6, 4.0


def ask_about(n_entities: int, n: int = N_QUESTIONS, seed: int = 3) -> list[str]:
    """Questions about entities drawn at random, in turn of one, two and no name."""
    rows = np.random.default_rng(seed).integers(1, n_entities, (n, 2)).tolist()
    shapes = ("Whom did {} marry?", "What did {} and {} do at the festival?", "who opened the library in the garden?")
    return [shapes[i % 3].format(*map(name_of, pair)) for i, pair in enumerate(rows)]


def time_contexts(index: GraphIndex, strategy: str, questions: Sequence[str]) -> np.ndarray:
    """Milliseconds of each context."""
    settings = index.settings.local_search.model_copy(update={"strategy": strategy})
    taken = []
    for question in questions:
        started = time.perf_counter()
        select_local_context(index, question, settings)
        taken.append(1000 * (time.perf_counter() - started))
    return np.array(taken)


def measure_contexts(root: Path, n_entities: int) -> Iterator[Figure]:
    """Figures of every strategy, and of opening."""
    questions = ask_about(n_entities)
    hub_questions = [f"Whom did {name_of(HUB)} {verb}?" for verb in ("marry", "meet", "teach", "visit", "follow")]
    started = time.perf_counter()
    with GraphIndex.open(root) as index:
        time_contexts(index, "balanced", questions[:1])
        yield Figure("local context, the first with opening", time.perf_counter() - started, "s")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        yield Figure("memory after the first context", peak / 1e9, "GB", MEMORY_GB)
        for strategy in STRATEGIES:
            time_contexts(index, strategy, questions[:3] + hub_questions[:1])
            taken = time_contexts(index, strategy, questions)
            yield Figure(f"local context, {strategy}: median", float(np.median(taken)), "ms", MEDIAN_MS)
            yield Figure(f"local context, {strategy}: 95th percentile", float(np.quantile(taken, 0.95)), "ms", P95_MS)
            taken = time_contexts(index, strategy, hub_questions)
            yield Figure(f"local context of the hub, {strategy}: median", float(np.median(taken)), "ms", MEDIAN_MS)


def run(folder: Path | None = None, n_entities: int = Shape.n_entities) -> Iterator[Figure]:
    """Publish the index where there is none, and measure it."""
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            yield from run(Path(temporary) / "root", n_entities)
        return
    if not (folder / "snapshots" / "current.json").exists():
        scale = n_entities / Shape.n_entities
        counts = (round(scale * n) for n in (Shape.n_relationships, Shape.n_text_units, Shape.n_reports))
        publish_large_index(folder, Shape(n_entities, *counts))
    yield from measure_contexts(folder, n_entities)
    cold = measure_command(folder, "query", "--context-only", ask_about(n_entities)[0])
    yield Figure("cold query --context-only", cold.wall_s, "s", COLD_S)


def main(arguments: Sequence[str]) -> int:
    """Print every row; 1 if a figure is over its limit."""
    folder = Path(arguments[0]) if arguments else None
    figures = []
    for figure in run(folder, *map(int, arguments[1:2])):
        print(figure.to_row(), flush=True)
        figures.append(figure)
    return int(any(figure.is_over for figure in figures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
