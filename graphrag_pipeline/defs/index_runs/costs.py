"""The costs of one `index`: estimated before a model is asked, said, and logged beside what was paid.

Keep out: how an estimate is made, and the log itself.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from graphrag_pipeline.defs.runs.resources import booking
from graphrag_pipeline.inspection.costs import append_costs, render_estimates
from graphrag_pipeline.inspection.estimates import StageEstimate, asks_any_model, estimate_index
from graphrag_pipeline.models.accounting import CallStats, booked_by_process
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.staleness import StalePartition

_paid: ContextVar[CallStats | None] = ContextVar("paid", default=None)


def paid_by_run() -> CallStats:
    """What models were asked for so far, by the `index` under way; nothing outside of one."""
    return _paid.get() or CallStats()


@contextmanager
def costs_kept(root: Root, say: Callable[[str], None]) -> Iterator[Callable[[list[StalePartition]], None]]:
    """Gives a function that estimates what is stale; at the end, whatever it is, that and what was paid are logged."""
    if not asks_any_model(root.settings):
        yield lambda stale: None
        return
    estimates: list[StageEstimate] = []
    paid: dict[str, CallStats] = {}

    def estimate(stale: list[StalePartition]) -> None:
        estimates.extend(estimate_index(root, stale))
        for line in render_estimates(estimates):
            say(line)

    def add(stage: str, account: CallStats) -> None:
        paid[stage] = paid.get(stage, CallStats()).merge(account)

    try:
        with booking(add), booked_by_process() as account, _paying(account):
            yield estimate
    finally:
        append_costs(root, estimates, paid)


@contextmanager
def _paying(account: CallStats) -> Iterator[None]:
    token = _paid.set(account)
    try:
        yield
    finally:
        _paid.reset(token)
