"""Stages that run beside another stage of the same index run, in a thread, so that both cores work.

Dagster runs the steps of a run in turn. While one stage works, the later ones that need nothing of it, and whose inputs
are made, run in its shadow. They write their tables and heads as usual. When Dagster reaches such a stage, its step
takes over what was made, if the inputs are still the same. If a stage failed here, its step runs it again and fails in
its own name. Stages that call a model's endpoint are left out, and so are shared stores and large graphs, because the
memory of two stages is needed at once. Keep out: what a stage does.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline.defs.runs.errors import calls_endpoint
from graphrag_pipeline.defs.runs.session import IndexSession
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.pipeline.data_versions import current_inputs
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES, Stage, all_upstream_of, input_partitions
from graphrag_pipeline.pipeline.staleness import why_stale

MAX_ROWS = 300_000
"""Rows of the tables that a stage reads, up to which it runs beside another one."""


@contextmanager
def running_beside(run: StageRun, root: Root, work: Callable[[StageRun], None]) -> Iterator[None]:
    """Run the stages that can run beside the one of `run`, in turn, while the context is open; wait at its end.

    Args:
        root: the root of `run`, with models whose calls `run` does not count.
        work: runs the body of a stage.
    """
    chosen = choose_stages(run)
    if not chosen:
        yield
        return
    with ThreadPoolExecutor(1, thread_name_prefix="stages-beside") as thread:
        waiting = [thread.submit(_make, root, stage, run.session, work) for stage in chosen]
        try:
            yield
        except BaseException:
            for future in waiting:
                future.cancel()
            raise


def choose_stages(run: StageRun) -> Sequence[Stage]:
    """Return the stages that wait in this index run and read nothing that is still to be made, in running order."""
    waiting = run.session.waiting
    if run.partition != WHOLE or run.root.shared:
        return []
    return [
        stage
        for name, stage in STAGES.items()
        if name in waiting - {run.stage.name}
        and not waiting & {above.name for above in all_upstream_of(stage)}
        and _is_light(run.root, stage)
    ]


def _is_light(root: Root, stage: Stage) -> bool:
    """Return whether a stage computes by itself, and little enough to fit into memory beside another one."""
    if stage.is_partitioned or calls_endpoint(stage, root.settings):
        return False
    heads = [root.tables.head(table, key) for table, key in input_partitions(stage, WHOLE, root.settings)]
    return all(heads) and sum(head.n_rows for head in heads if head) <= MAX_ROWS


def _make(root: Root, stage: Stage, session: IndexSession, work: Callable[[StageRun], None]) -> None:
    """Run a stage and keep it for its step."""
    started = time.monotonic()
    lines: list[str] = []
    with suppress(Exception):  # whatever fails here, its step runs it again and says why
        run = StageRun(root, stage, WHOLE, lines.append, session)
        if why_stale(root, stage, WHOLE, run.code):
            run.pin_inputs()
            work(run)
            run.seconds_beside = time.monotonic() - started
            session.made_beside[stage.name] = run, lines


def take_made_beside(run: StageRun) -> StageRun | None:
    """Return the run that made this stage beside another one, from what it would read now, by its code; else None."""
    made, lines = run.session.made_beside.pop(run.stage.name, (None, []))
    if made is None or run.is_reclustering:
        return None
    if (made.code, made.inputs) != (run.code, current_inputs(run.root, run.stage, run.partition)):
        return None
    for line in lines:
        run.log(line)
    made.log = run.log
    return made
