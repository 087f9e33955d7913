"""Retries of failed steps in runs that Dagster starts.

The client of a model already repeats single requests. A retry here outlasts an endpoint that is down for minutes. Paid
replies are stored, so a retry requests only the missing ones. Dagster's own retry policies do not fit: they also retry
runs that the user terminates.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from graphrag_pipeline.defs.runs.errors import in_words
from graphrag_pipeline.defs.runs.loaded_code import OldDefinitionsError
from graphrag_pipeline.errors import PipelineError, PromptError, SettingsError
from graphrag_pipeline.inspection.costs import MixedPromptsError
from graphrag_pipeline.models.spending import BudgetExceededError
from graphrag_pipeline.pipeline.stage_code import embeds, uses_chat_model
from graphrag_pipeline.pipeline.stages import Stage
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.tables import MODEL_STAGES

RETRY_POLICY = dg.RetryPolicy(max_retries=2, delay=30, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS)

_STAYING = (SettingsError, PromptError, BudgetExceededError, OldDefinitionsError, MixedPromptsError)
"""Errors that a retry cannot cure."""


def calls_endpoint(stage: Stage, settings: Settings) -> bool:
    """Return whether a stage calls a model behind an endpoint; local computation would only fail again."""
    has_model = uses_chat_model(stage, settings) or (embeds(stage, settings) and settings.embeddings.engine == "model")
    return has_model and stage.name in MODEL_STAGES


@contextmanager
def retrying(context: dg.OpExecutionContext | dg.AssetExecutionContext, policy: dg.RetryPolicy) -> Iterator[None]:
    """Retry a step if its error may pass; an interrupted step ends its run as canceled.

    Raises:
        RetryRequested: Dagster starts another attempt; its words are those of the error.
        ExplainedError: a retry cannot cure the error, or this was the last attempt.
    """
    with in_words():
        try:
            yield
        except _STAYING:
            raise
        except (PipelineError, OSError) as error:
            if context.retry_number >= policy.max_retries:
                raise
            wait_s = math.ceil(policy.calculate_delay(context.retry_number + 1))
            request = dg.RetryRequested(policy.max_retries, wait_s)
            request.args = (str(error),)
            raise request from error
