"""The costs of an index run: estimated, compared with the budget, and logged; and one tiny first request to each model.

Without the request, an embedding server that answers 501 would show only after extraction has been paid. It is neither
retried nor stored, and it is booked as `model_checks`. Keep out: how an estimate is made, and the format of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from graphrag_pipeline.defs.runs.session import IndexSession
from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.inspection.costs import StageEstimate, append_costs, refuse_over_budget, render_estimates
from graphrag_pipeline.inspection.estimates import estimate_index
from graphrag_pipeline.models.accounting import Caller, CallStats, paid_run
from graphrag_pipeline.models.endpoints.batching import is_batching
from graphrag_pipeline.models.endpoints.probe import EndpointProbe
from graphrag_pipeline.models.ports import CallFailedError
from graphrag_pipeline.models.spending import Spending
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stage_code import asks_any_model
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.pipeline.staleness import StalePartition
from graphrag_pipeline.settings.models import ChatModelSettings, EmbeddingModelSettings
from graphrag_pipeline.settings.settings import Settings


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
        with paid_run("index --batch" if is_batching() else "index", started_by and f"dagster {started_by}"):
            yield prepare
    finally:
        append_costs(root, estimates, session.costs.by_stage, session.costs.problems)


MODEL_CHECKS = "model_checks"
"""The name of these requests in the log of costs."""
TIMEOUT_S = 60.0
_PROMPT = "Reply with one word: yes."
_MAX_TOKENS = 16

_ModelSettings = ChatModelSettings | EmbeddingModelSettings


def check_models(
    root: Root, estimates: Iterable[StageEstimate], account: CallStats, report: Callable[[str], None]
) -> None:
    """Send a request to each model of the estimated calls, if there are several models and calls for certain.

    Once an index is published, its models have answered, and an update pays little before a fault shows. One model
    alone needs no check, because its first call shows what is wrong. Calls that are only scaled from the number of text
    units may all be stored, so they alone are no reason for a check.

    Args:
        account: counts the requests.
        report: gets a message on a request that got no answer for a reason that may pass, such as a time-out.

    Raises:
        PipelineError: a model cannot be used: no server, no access, no such model, or no such requests.
    """
    expected = [estimate for estimate in estimates if estimate.call_range[1]]
    models = dict(_models_of(root.settings, expected))
    if root.snapshots.current() or len(models) < 2 or all(estimate.is_scaled for estimate in expected):
        return
    caller, spending = Caller((account, *root.accounts)), root.models.spending
    with ThreadPoolExecutor(len(models)) as pool:
        asked = [pool.submit(_ask, settings, spending, caller) for settings in models.values()]
    for settings, one in zip(models.values(), asked, strict=True):
        try:
            one.result()
        except CallFailedError as error:
            report(f"{settings.model}: a first request got no usable answer ({error.reason}); the run goes on")
        except SettingsError:  # it names the variable to set; no request was sent
            raise
        except PipelineError as error:
            raise PipelineError(f"only first tiny requests were paid for this run: {error}") from None


def _models_of(settings: Settings, estimates: Iterable[StageEstimate]) -> Iterator[tuple[str, _ModelSettings]]:
    """Yield each model with a key that equal models share."""
    for estimate in estimates:
        section = STAGES[estimate.stage].model_section
        model = settings.model_for(section)
        yield f"{section == 'embeddings'} {model.base_url} {model.model} {model.api_key_env}", model


def _ask(settings: _ModelSettings, spending: Spending, caller: Caller) -> None:
    probe = EndpointProbe(settings, spending, caller, TIMEOUT_S)
    if isinstance(settings, ChatModelSettings):
        probe.chat(_PROMPT, _MAX_TOKENS)
    else:
        probe.embed([_PROMPT])
