"""Stages that worker processes compute: the buckets of one at the same time, or one over the whole corpus in parts.

Dagster runs the buckets of a stage in turn. Where a stage computes by itself and there is enough to do, workers compute
all its buckets side by side. The step of a bucket writes what a worker made, if the inputs and the code are still the
same. It computes the bucket itself if the worker failed, so that the error is raised in its own name.
Keep out: what a stage does, and the processes (`workers.py`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphrag_pipeline.defs.assets import bodies
from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline.defs.runs.session import IndexSession
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES, Stage
from graphrag_pipeline.pipeline.staleness import why_stale
from graphrag_pipeline.tables import STAGE_TABLES

COMPUTED_BY: Mapping[str, str] = {
    "extracted_graph": "extraction",
    "sentence_embeddings": "",
    "text_unit_embeddings": "embeddings",
}
"""Bucket stages that take long without a model, and the section of the settings that names their engine."""
WORTH_ROWS = 300
"""Text units of stale buckets from which on it is worth while to start processes for them."""
IN_PARTS: Mapping[str, str] = {
    "summarized_descriptions": "descriptions",
    "community_reports": "reports",
}
"""Stages over the whole corpus that can be computed in parts, and the section of the settings with their engine."""
WORTH_ROWS_OF_GRAPH, MAX_ROWS_OF_GRAPH = 10_000, 1_000_000
"""Rows that such a stage reads for which it is computed in parts: each worker reads them all, into memory."""


@dataclass
class Made:
    """What a worker computed: a bucket, or a part of a stage.

    Attributes:
        code, inputs: what the result depends on.
        tables: of the stage, by name.
        details: metadata that the body added.
        lines: of the log.
        seconds: time it took.
    """

    code: dict[str, Any]
    inputs: dict[str, str]
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    seconds: float = 0.0


class _WorkerRun(StageRun):
    """A run whose tables are returned instead of written."""

    def save(self, tables: Mapping[str, pa.Table]) -> None:
        self._written = tables

    @property
    def written(self) -> Mapping[str, pa.Table]:
        return self._written


def start_buckets(root: Root, stage: Stage, buckets: Sequence[str], session: IndexSession, is_stale_only: bool) -> None:
    """Let the workers of a session compute the buckets of a stage, if that saves time; `take_bucket` takes each.

    Args:
        is_stale_only: leave out buckets that are fresh.
    """
    engine = COMPUTED_BY.get(stage.name)
    if engine is None or session.workers.n == 1 or (engine and getattr(root.settings, engine).engine != "embedded"):
        return
    code = root.code_of(stage)
    stale = [key for key in buckets if not is_stale_only or why_stale(root, stage, key, code)]
    heads = [root.tables.head("text_units", key) for key in stale]
    n_rows = sum(head.n_rows for head in heads if head)
    if len(stale) < 2 or (n_rows < WORTH_ROWS and not session.workers.is_running):
        return
    for key in stale:
        session.started_buckets[stage.name, key] = session.workers.submit(_compute, root.path, stage.name, key)


def start_early(root: Root, n_documents: int, session: IndexSession) -> None:
    """Start the workers while the first stages run, if so many changed documents will need them."""
    if session.workers.n > 1 and n_documents >= WORTH_ROWS and root.settings.extraction.engine == "embedded":
        for _ in range(session.workers.n):
            session.workers.submit(_prepare, root.path)


def _prepare(path: Path) -> None:
    Root(path).code_of(STAGES["extracted_graph"])


def take_bucket(run: StageRun) -> bool:
    """Write what a worker computed for a run, if by the same code and from the inputs it pinned; else return False."""
    future = run.session.started_buckets.pop((run.stage.name, run.partition), None)
    return future is not None and _take(run, [future])


def compute_in_parts(run: StageRun) -> bool:
    """Let workers compute parts of a stage over the whole corpus, and write them together; False if it does not pay."""
    engine, workers = IN_PARTS.get(run.stage.name), run.session.workers
    if engine is None or workers.n == 1 or getattr(run.settings, engine).engine != "embedded":
        return False
    if not WORTH_ROWS_OF_GRAPH <= run.n_rows_read <= MAX_ROWS_OF_GRAPH:
        return False
    parts = [(number, workers.n) for number in range(workers.n)]
    arguments = run.root.path, run.stage.name, run.partition
    return _take(run, [workers.submit(_compute, *arguments, part, run.is_reclustering) for part in parts])


def _compute(path: Path, stage: str, partition: str, part: tuple[int, int] = (0, 1), is_cold: bool = False) -> Made:
    """Compute a bucket, or a part of a stage, in a worker."""
    started = time.monotonic()
    lines: list[str] = []
    run = _WorkerRun(Root(path), STAGES[stage], partition, lines.append)
    run.part, run.is_reclustering = part, is_cold
    run.pin_inputs()
    getattr(bodies, stage)(run)
    return Made(run.code, run.inputs, run.written, run.details, lines, time.monotonic() - started)


def _take(run: StageRun, futures: Sequence[Future[Made]]) -> bool:
    """Write the tables that workers computed, put together, as those of the run; False if one cannot be used."""
    try:
        parts = [future.result() for future in futures]
    except Exception as error:
        if isinstance(error, BrokenProcessPool):
            run.session.workers.stop()  # the next stage starts others
        run.log(f"a worker process did not finish ({type(error).__name__}): computed in the process of the run")
        return False
    if any((part.code, part.inputs) != (run.code, run.inputs) for part in parts):
        return False
    for line in parts[0].lines:
        run.log(line)
    run.details |= parts[0].details
    run.seconds_before = max(part.seconds for part in parts) if len(parts) == 1 else 0.0
    tables = {name: [part.tables[name] for part in parts] for name in parts[0].tables}
    run.save({name: STAGE_TABLES[name].sort(*rows) for name, rows in tables.items()})
    return True
