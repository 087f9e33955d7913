"""Errors of Dagster runs: the cause in our words, on a run's page and on the terminal, and retries of failed steps.

The client of a model already repeats single requests. A retry here outlasts an endpoint that is down for minutes. Paid
replies are stored, so a retry requests only the missing ones. Dagster's own retry policies do not fit: they also retry
runs that the user terminates.
"""

from __future__ import annotations

import logging
import math
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg

from graphrag_pipeline.defs.runs.loaded_code import OldDefinitionsError
from graphrag_pipeline.errors import PipelineError, PromptError, SettingsError
from graphrag_pipeline.filesystem.files import WRITE_REMEDY
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.inspection.costs import MixedPromptsError
from graphrag_pipeline.models.spending import BudgetExceededError
from graphrag_pipeline.pipeline.stage_code import embeds, uses_chat_model
from graphrag_pipeline.pipeline.stages import Stage
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.tables import MODEL_STAGES
from graphrag_pipeline.text.safe_output import as_code_block

_DISK_ERRORS = ("No space left on device", "Read-only file system", "Permission denied", "Disk quota exceeded")
_INTERRUPTED = "DagsterExecutionInterruptedError"
"""Dagster raises this for both Ctrl-C and SIGTERM while a stage runs."""


class ExplainedError(dg.Failure, PipelineError):
    """An error whose words Dagster shows first on the page of a run, above its own and the traceback."""


@contextmanager
def in_words() -> Iterator[None]:
    """Let a step fail with the words of a `PipelineError`, not with "Error occurred while executing op".

    The frames of the error are metadata of the failure, which its page shows on a click.

    Raises:
        ExplainedError: instead of a `PipelineError`, which is its cause.
    """
    try:
        yield
    except ExplainedError:
        raise
    except PipelineError as error:
        frames = dg.MetadataValue.md(as_code_block("".join(traceback.format_exception(error))))
        raise ExplainedError(str(error), {"frames": frames}, allow_retries=False) from _without_frames(error)


def _without_frames(error: PipelineError) -> PipelineError:
    error.__cause__, error.__context__ = None, None
    return error.with_traceback(None)


def is_explained(error: Any) -> bool:
    """Return whether the words of an error, as an event holds it, are ours."""
    return error.cls_name in (ExplainedError.__name__, dg.RetryRequested.__name__)


def failure_of(result: dg.ExecuteInProcessResult, partition: str) -> BaseException:
    """Return why a run failed, in one line: a `PipelineError`, or a `KeyboardInterrupt` if it was stopped."""
    for event in result.all_events:
        if event.event_type_value == "PIPELINE_CANCELED":
            return KeyboardInterrupt()
        if event.event_type_value == "ASSET_CHECK_EVALUATION" and not event.asset_check_evaluation_data.passed:
            return PipelineError(_words_of_check(result, event))
        if event.is_step_failure:
            where = str(event.step_key) if partition == WHOLE else f"{event.step_key}, bucket {partition}"
            return explain_error(where, event.step_failure_data.error)
        if event.is_failure:
            return explain_error(f"run {result.run_id}", event.job_failure_data.error)
    return PipelineError(f"run {result.run_id} failed without a reason; see it in `graphrag-pipeline dev`")


def _words_of_check(result: dg.ExecuteInProcessResult, event: dg.DagsterEvent) -> str:
    """Return why a check failed: the words of its step, since those of the check itself are markdown."""
    for failed in result.all_events:
        if failed.is_step_failure and failed.step_key == event.step_key:
            said = failed.step_failure_data.user_failure_data
            if said and said.description:
                return said.description
    check = event.asset_check_evaluation_data
    reason = f": {check.description}" if check.description else ""
    return f"check {check.check_name} of {check.asset_key.to_user_string()} failed{reason}"


def explain_error(where: str, error: Any) -> BaseException:
    """Return the first `PipelineError` among the causes of an error, else its last cause as one."""
    ours = _our_errors()
    while error and error.cause and error.cls_name not in ours:
        error = error.cause
    if error is None:
        return PipelineError(f"{where} failed without a reason; see the run in `graphrag-pipeline dev`")
    if error.cls_name == _INTERRUPTED:
        return KeyboardInterrupt()
    message = " ".join(error.message.split("\n")).strip()
    if error.cls_name in ours:
        return ours[error.cls_name](f"{where} failed: {message.partition(': ')[2]}")
    if any(reason in message for reason in _DISK_ERRORS):
        way_out = WRITE_REMEDY
    else:
        way_out = "its traceback is in the last run shown by `graphrag-pipeline dev`"
    return PipelineError(f"{where} failed: {message}; {way_out}")


def _our_errors() -> dict[str, type[PipelineError]]:
    """Class by name for `PipelineError` and its subclasses; one that needs more than a message becomes the former.

    An `ExplainedError` is not among them: its cause is the error.
    """
    found, pending = {}, [PipelineError]
    while pending:
        error = pending.pop()
        found[error.__name__] = error if error.__init__ is PipelineError.__init__ else PipelineError
        pending += (other for other in error.__subclasses__() if other is not ExplainedError)
    return found


_STACK = "\n\n"


class WordsLogger(logging.Logger):
    """A logger that drops the stack from lines of Dagster's events whose error is explained."""

    def handle(self, record: logging.LogRecord) -> None:
        """Shorten a record of Dagster, and handle it."""
        event = (getattr(record, "dagster_meta", None) or {}).get("dagster_event")
        error = getattr(event.event_specific_data, "error", None) if event else None
        if error and is_explained(error):
            words = " ".join(error.message.partition(": ")[2].split())
            record.msg = f"{str(record.msg).partition(_STACK)[0]} {words}"
        super().handle(record)


def show_failures_in_words() -> None:
    """Let loggers that this process makes from now on show explained failures in words."""
    logging.setLoggerClass(WordsLogger)


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
