"""The words of a failed step: ours come first on the page of its run, after retries, too."""

import logging
from collections.abc import Iterator

import dagster as dg
import pytest
from markdown_it import MarkdownIt

from graphrag_pipeline.defs.assets.checks import _judge_each, _Judgement
from graphrag_pipeline.defs.runs.errors import WordsLogger, failure_of, in_words, retrying, show_failures_in_words
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.models.spending import BudgetExceededError

SOON = dg.RetryPolicy(max_retries=1, delay=0)
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def fail_with(error: Exception, is_retried: bool) -> dg.ExecuteInProcessResult:
    """Return a run whose only step fails."""

    @dg.op
    def failing(context: dg.OpExecutionContext) -> None:
        with retrying(context, SOON) if is_retried else in_words():
            raise error

    @dg.job
    def job() -> None:
        failing()

    return job.execute_in_process(raise_on_error=False, run_config=QUIET)


@pytest.mark.parametrize("is_retried", [False, True])
def test_a_failed_step_shows_our_words_first(is_retried: bool) -> None:
    result = fail_with(PipelineError("the model is down; start it"), is_retried)
    [failure] = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    assert failure.error and failure.error.message.partition(": ")[2].strip() == "the model is down; start it"
    assert failure.user_failure_data and failure.user_failure_data.description == "the model is down; start it"
    assert str(failure_of(result, WHOLE)) == "failing failed: the model is down; start it"


def test_a_step_that_is_tried_again_shows_why() -> None:
    result = fail_with(PipelineError("the model is down; start it"), is_retried=True)
    retries = [event for event in result.all_events if event.is_step_up_for_retry]
    assert len(retries) == SOON.max_retries
    assert "the model is down; start it" in retries[0].step_retry_data.error.message


def test_an_error_that_stays_is_not_tried_again_and_keeps_its_class() -> None:
    result = fail_with(BudgetExceededError("the budget is used up"), is_retried=True)
    assert not [event for event in result.all_events if event.is_step_up_for_retry]
    assert isinstance(failure_of(result, WHOLE), BudgetExceededError)


def test_the_frames_of_a_failure_make_no_image() -> None:
    result = fail_with(PipelineError("`a\n```\n![x](http://evil.example/x.png)` cannot be read"), is_retried=False)
    [failure] = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    frames = failure.user_failure_data.metadata["frames"].value
    assert [token.type for token in MarkdownIt("commonmark").parse(frames)] == ["fence"]


def test_a_failed_check_is_said_in_words_though_dagster_shows_its_markdown() -> None:
    line = "record `![x](http://evil.example/x.png)` has no text"

    @dg.asset
    def candidate() -> None:
        pass

    @dg.multi_asset_check(specs=[dg.AssetCheckSpec("whole", asset="candidate", blocking=True)])
    def check() -> Iterator[dg.AssetCheckResult]:
        yield from _judge_each({"whole": lambda: _Judgement(False, line, [line])}, "a snapshot")

    result = dg.materialize([candidate, check], raise_on_error=False, run_config=QUIET)
    [evaluation] = result.get_asset_check_evaluations()
    assert "![" in line and MarkdownIt("commonmark").render(evaluation.description).count("<img") == 0
    assert (
        str(failure_of(result, WHOLE)) == f"check whole of the candidate failed: {line}. The published snapshot stays"
    )


@pytest.mark.parametrize("description", [None, ""])
def test_a_failed_check_without_a_description_is_named_alone(description: str | None) -> None:
    @dg.asset
    def candidate() -> None:
        pass

    @dg.asset_check(asset=candidate, blocking=True)
    def whole() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=False, description=description)

    result = dg.materialize([candidate, whole], raise_on_error=False, run_config=QUIET)
    assert str(failure_of(result, WHOLE)) == "check whole of candidate failed"


@pytest.mark.parametrize("is_ours", [True, False])
def test_the_terminal_shows_a_failure_of_ours_in_words_and_another_one_with_its_frames(
    is_ours: bool, capfd: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    error = PipelineError("the model is down; start it") if is_ours else ValueError("a bug")

    @dg.op
    def failing() -> None:
        with in_words():
            raise error

    @dg.job
    def job() -> None:
        failing()

    before = logging.getLoggerClass()
    request.addfinalizer(lambda: logging.setLoggerClass(before))
    show_failures_in_words()
    assert logging.getLoggerClass() is WordsLogger
    result = job.execute_in_process(raise_on_error=False)
    shown = "".join(capfd.readouterr())
    assert ("the model is down; start it" if is_ours else "a bug") in shown
    assert ("Stack Trace" in shown) is not is_ours
    [failure] = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    assert (failure.user_failure_data is not None) is is_ours
    assert not is_ours or "test_errors.py" in failure.user_failure_data.metadata["frames"].value
