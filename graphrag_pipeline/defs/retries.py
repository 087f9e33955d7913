"""Trying again what failed in a run that nobody watches.

A client of a model already repeats single requests; a policy here outlasts an endpoint that is down for minutes. What
was paid is stored, so a second try asks only for what is missing.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from graphrag_pipeline.defs.loaded_code import OldDefinitionsError
from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.models.spending import BudgetExceededError
from graphrag_pipeline.settings import Settings
from graphrag_pipeline.stages import Stage, asks_model, embeds
from graphrag_pipeline.tables import ASKING_STAGES

RETRY_POLICY = dg.RetryPolicy(max_retries=2, delay=30, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS)

_STAYING = (SettingsError, BudgetExceededError, OldDefinitionsError)
"""Errors that are the same a minute later."""


def retry_policy_of(stage: Stage, settings: Settings) -> dg.RetryPolicy | None:
    """A policy for a stage that asks a model behind an endpoint; none for what this machine computes."""
    has_model = asks_model(stage, settings) or (embeds(stage, settings) and settings.embeddings.engine == "model")
    return RETRY_POLICY if has_model and stage.name in ASKING_STAGES else None


@contextmanager
def giving_up_where_retries_are_vain(context: dg.OpExecutionContext | dg.AssetExecutionContext) -> Iterator[None]:
    """Let an error that stays fail at once a step that would be tried again."""
    try:
        yield
    except _STAYING as error:
        if context.op_def.retry_policy is None:
            raise
        raise dg.Failure(str(error), allow_retries=False) from error
