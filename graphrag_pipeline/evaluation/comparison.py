"""Comparison of two conditions: both answer the same questions, and a chat model judges the answers.

The result lists the tokens and the cost of each condition. An A/A control judges A against a second, independent answer
of A, which shows how far the judge alone moves the figures. Keep out: conditions (`conditions.py`), judging
(`judging.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.conditions import Condition, answer_question
from graphrag_pipeline.evaluation.judging import CriterionFigures, judge_pairs
from graphrag_pipeline.evaluation.metered import SECOND_ANSWER, MeteredIndex
from graphrag_pipeline.evaluation.questions import Question
from graphrag_pipeline.text.counted import counted

if TYPE_CHECKING:
    from graphrag_pipeline.query.index.graph_index import GraphIndex

OnProgress = Callable[[str], None]
_PROGRESS_EVERY = 10
"""Questions between two lines of progress."""


@dataclass(frozen=True)
class ConditionFigures:
    """Usage of one condition over all questions.

    Attributes:
        replies: replies of models. Stored replies count like new ones, here and in `tokens` and `cost`.
        cost: US dollars, without `unpriced` replies.
        seconds: wall-clock time of all questions; a stored reply takes none.
        failed: answers that the embedded engine wrote because the model failed.
    """

    name: str
    replies: int
    tokens: int
    cost: float
    unpriced: int
    seconds: float
    failed: int


@dataclass(frozen=True)
class Comparison:
    """Verdicts on A against B, and on A against itself."""

    n_questions: int
    conditions: tuple[ConditionFigures, ConditionFigures]
    verdicts: tuple[CriterionFigures, ...]
    control: tuple[CriterionFigures, ...]
    judge: ConditionFigures

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare_conditions(
    index: GraphIndex,
    questions: Sequence[Question],
    first: Condition,
    second: Condition,
    on_progress: OnProgress = lambda line: None,
) -> Comparison:
    """Answer every question under both conditions and judge the answers.

    Raises:
        PipelineError: no model is named, an option does not validate, no call can be answered, or the budget is spent.
    """
    if not index.settings.chat_model_for("evaluation").model:
        raise PipelineError("a chat model judges the answers; set `chat_model.model` or `evaluation.model`")
    for condition in (first, second):
        condition.settings_of(index)
    texts_a, figures_a = _answer_all(index, questions, first, 0, on_progress)
    texts_b, figures_b = _answer_all(index, questions, second, 0, on_progress)
    texts_again, _ = _answer_all(index, questions, first, SECOND_ANSWER, on_progress)
    judge = MeteredIndex(index)
    texts = [question.question for question in questions]
    on_progress(f"judging {counted(len(texts), 'questions')}")
    verdicts = judge_pairs(judge, list(zip(texts, texts_a, texts_b, strict=True)))
    control = judge_pairs(judge, list(zip(texts, texts_a, texts_again, strict=True)))
    return Comparison(
        n_questions=len(texts),
        conditions=(figures_a, figures_b),
        verdicts=tuple(verdicts),
        control=tuple(control),
        judge=_figures_of("judge", judge, 0.0, 0),
    )


def _answer_all(
    index: GraphIndex, questions: Sequence[Question], condition: Condition, repeat: int, on_progress: OnProgress
) -> tuple[list[str], ConditionFigures]:
    metered = MeteredIndex(index, repeat)
    answers = []
    for number, question in enumerate(questions, start=1):
        answers.append(answer_question(condition, metered, question.question))
        if number % _PROGRESS_EVERY == 0 or number == len(questions):
            on_progress(f"{condition.name}{', again' if repeat else ''}: {number:,} of {len(questions):,}")
    seconds, n_failed = sum(answer.seconds for answer in answers), sum(bool(answer.failure) for answer in answers)
    return [answer.text for answer in answers], _figures_of(condition.name, metered, seconds, n_failed)


def _figures_of(name: str, index: MeteredIndex, seconds: float, n_failed: int) -> ConditionFigures:
    meter = index.meter
    return ConditionFigures(name, meter.replies, meter.tokens, meter.cost, meter.unpriced, seconds, n_failed)


def render_comparison(comparison: Comparison) -> list[str]:
    """Return lines of text: the verdicts, the control, and the usage of both conditions."""
    a, b = comparison.conditions
    lines = [f"A = {a.name}, B = {b.name}, {counted(comparison.n_questions, 'questions')}, each judged in both orders"]
    lines += _table("A against B", comparison.verdicts)
    lines += _table("A against A (control)", comparison.control)
    width = max(len("condition"), len(a.name), len(b.name))
    lines += ["", f"{'condition':{width}}  {'replies':>8}  {'tokens':>11}  {'USD':>9}  {'seconds':>8}  {'failed':>6}"]
    for row in (a, b, comparison.judge):
        cost = "unknown" if row.unpriced else f"{row.cost:.4f}"
        counts = f"{row.replies:>8,}  {row.tokens:>11,}  {cost:>9}  {row.seconds:>8.1f}  {row.failed:>6}"
        lines.append(f"{row.name:{width}}  {counts}")
    if b.tokens:
        lines.append(f"A took {a.tokens / b.tokens:.1%} of the tokens of B")
    return lines


def _table(title: str, figures: Sequence[CriterionFigures]) -> list[str]:
    heading = f"{'A wins':>7}  {'B wins':>7}  {'ties':>5}  {'win rate of A':20}  {'p (sign test)':>13}  first"
    lines = ["", f"{title:26}{heading}"]
    for row in figures:
        rate, first = row.win_rate_estimate.render(), row.first_share_estimate.render(2)
        counts = f"{row.wins:>7}  {row.losses:>7}  {row.ties:>5}  {rate:20}  {row.p_value:>13.3f}"
        failed = f"  {row.n_failed} failed" if row.n_failed else ""
        lines.append(f"{row.criterion:26}{counts}  {first}{failed}")
    return lines
