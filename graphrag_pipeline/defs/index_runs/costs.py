"""The costs of an index run: estimated before a model is called, reported, and logged beside what was paid.

Keep out: how an estimate is made, and the format of the log (`inspection/`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from graphrag_pipeline.defs.index_runs.first_requests import MODEL_CHECKS, check_models
from graphrag_pipeline.defs.runs.session import IndexSession
from graphrag_pipeline.inspection.costs import StageEstimate, append_costs, refuse_over_budget, render_estimates
from graphrag_pipeline.inspection.estimates import estimate_index
from graphrag_pipeline.models.accounting import CallStats, paid_run
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stage_code import asks_any_model
from graphrag_pipeline.pipeline.staleness import StalePartition


@contextmanager
def log_costs(
    root: Root, session: IndexSession, started_by: str = ""
) -> Iterator[Callable[[list[StalePartition]], None]]:
    """Give a function that estimates stale partitions and checks the models that they need.

    At the end, also on errors, the estimate and the cost are logged.

    Args:
        started_by: id of the run in Dagster that began the index run; "": a command.
    """
    if not asks_any_model(root.settings):
        yield lambda stale: None
        return
    estimates: list[StageEstimate] = []

    def prepare(stale: list[StalePartition]) -> None:
        estimates.extend(estimate_index(root, stale))
        for line in render_estimates(estimates):
            session.observer.progress(line)
        refuse_over_budget(root, estimates)
        account = CallStats()
        try:
            check_models(root, estimates, account, session.observer.progress)
        finally:
            session.costs.book(MODEL_CHECKS, account)

    try:
        with paid_run("index", started_by and f"dagster {started_by}"):
            yield prepare
    finally:
        append_costs(root, estimates, session.costs.by_stage, session.costs.problems)
