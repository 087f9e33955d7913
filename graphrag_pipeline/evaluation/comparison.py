"""Two conditions compared: both answer the same questions, a chat model judges, and tokens and cost stand beside.

The A/A control judges A against a second answer of its own, asked independently: it says how far the judge alone moves
the figures. Keep out: what a condition is (`conditions.py`), how answers are judged (`judging.py`).
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

if TYPE_CHECKING:
    from graphrag_pipeline.query.graph_index import GraphIndex

Say = Callable[[str], None]
_TOLD_EVERY = 10
"""Questions between two lines that say how far it is."""


@dataclass(frozen=True)
class ConditionFigures:
    """What the answers of one condition took.

    Attributes:
        replies: of models, stored ones counted like new ones, as tokens and cost are.
        cost: US dollars, without `unpriced` replies.
        seconds: by the clock, of all questions; stored replies take none.
        failed: answers for which the embedded engine stood in.
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
    """Verdicts on A and B, and on A against itself."""

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
    say: Say = lambda line: None,
) -> Comparison:
    """Answer every question by both, and judge.

    Raises:
        PipelineError: no model is named, an option does not validate, no call can be answered, or the budget is spent.
    """
    if not index.settings.chat_model_for("evaluation").model:
        raise PipelineError("answers are judged by a chat model: set chat_model.model, or evaluation.model")
    for condition in (first, second):
        condition.settings_of(index)
    texts_a, figures_a = _answer_all(index, questions, first, 0, say)
    texts_b, figures_b = _answer_all(index, questions, second, 0, say)
    texts_again, _ = _answer_all(index, questions, first, SECOND_ANSWER, say)
    judge = MeteredIndex(index)
    asked = [question.question for question in questions]
    say(f"judging {len(asked):,} questions")
    verdicts = judge_pairs(judge, list(zip(asked, texts_a, texts_b, strict=True)))
    control = judge_pairs(judge, list(zip(asked, texts_a, texts_again, strict=True)))
    return Comparison(
        n_questions=len(asked),
        conditions=(figures_a, figures_b),
        verdicts=tuple(verdicts),
        control=tuple(control),
        judge=_figures_of("judge", judge, 0.0, 0),
    )


def _answer_all(
    index: GraphIndex, questions: Sequence[Question], condition: Condition, repeat: int, say: Say
) -> tuple[list[str], ConditionFigures]:
    metered = MeteredIndex(index, repeat)
    answers = []
    for number, question in enumerate(questions, start=1):
        answers.append(answer_question(condition, metered, question.question))
        if number % _TOLD_EVERY == 0 or number == len(questions):
            say(f"{condition.name}{', again' if repeat else ''}: {number:,} of {len(questions):,}")
    seconds, n_failed = sum(answer.seconds for answer in answers), sum(bool(answer.failure) for answer in answers)
    return [answer.text for answer in answers], _figures_of(condition.name, metered, seconds, n_failed)


def _figures_of(name: str, index: MeteredIndex, seconds: float, n_failed: int) -> ConditionFigures:
    meter = index.meter
    return ConditionFigures(name, meter.replies, meter.tokens, meter.cost, meter.unpriced, seconds, n_failed)


def render_comparison(comparison: Comparison) -> list[str]:
    """Verdicts, the control and what both took, in lines."""
    a, b = comparison.conditions
    lines = [f"A = {a.name}, B = {b.name}, {comparison.n_questions:,} questions, each judged in both orders"]
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
    heading = f"{'A wins':>7}  {'B wins':>7}  {'ties':>5}  {'win rate of A':>13}  {'p (sign test)':>13}  {'first':>6}"
    lines = ["", f"{title:26}{heading}"]
    for row in figures:
        counts = f"{row.wins:>7}  {row.losses:>7}  {row.ties:>5}  {row.win_rate:>13.3f}  {row.p_value:>13.3f}"
        failed = f"  {row.n_failed} failed" if row.n_failed else ""
        lines.append(f"{row.criterion:26}{counts}  {row.first_share:>6.2f}{failed}")
    return lines
