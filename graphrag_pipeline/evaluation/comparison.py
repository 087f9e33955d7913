"""Comparisons of two configurations: a model judges their answers, each pair in both orders, or two raters rate.

The blog post on dynamic community selection (Microsoft Research, 2024) compares a cheap rater with a dear one: what
they keep, and what it costs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.answer_judging import SECOND_ANSWER, MeteredIndex
from graphrag_pipeline.evaluation.conditions import Condition, answer_question
from graphrag_pipeline.evaluation.confidence import Estimate, estimate_share, sign_test
from graphrag_pipeline.evaluation.questions import Question
from graphrag_pipeline.models.metering import Meter
from graphrag_pipeline.models.ports import ChatRequest, Failure, ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.prompts import AUTO
from graphrag_pipeline.models.reply_json import MOST_CHARACTERS, json_schema_format, read_json
from graphrag_pipeline.query.model_requests import as_data, open_question, request_all
from graphrag_pipeline.query.search.community_selection import rate_reports
from graphrag_pipeline.text.counted import counted

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline.query.index.graph_index import GraphIndex

SECTION = "evaluation"
CRITERIA = {
    "comprehensiveness": "how much detail the answer gives to cover all aspects of the question.",
    "diversity": "how varied and rich the answer is in perspectives on the question and insights about it.",
    "empowerment": "how well the answer helps the reader to understand the subject and to judge it for themselves.",
    "directness": "how specifically and clearly the answer says what was asked, and nothing else.",
}


# The docstring of this model is a description in the schema that is sent; request keys cover it.


class VerdictReply(BaseModel):
    """The schema that the model is asked for."""

    reason: str
    winner: int


VERDICT_FORMAT = json_schema_format(VerdictReply, "verdict")
LIMITS: dict[str, dict[str, Any]] = {"reason": {"maxLength": MOST_CHARACTERS}, "winner": {"enum": [0, 1, 2]}}
Pair = tuple[str, str, str]
"""Question, answer of A, answer of B."""


@dataclass(frozen=True)
class CriterionFigures:
    """Verdicts by one criterion; "wins" are those of A.

    Attributes:
        wins, losses, ties: questions.
        win_rate: share of the questions that A wins, where a tie is half a win.
        p_value: two-sided sign test over the questions that are not ties; 1 if all are ties.
        first_share: share of the verdicts with a winner that chose the answer in first place; 0.5 without a bias.
        n_failed: questions without both verdicts.
    """

    criterion: str
    wins: int
    losses: int
    ties: int
    win_rate: Estimate
    p_value: float
    first_share: Estimate
    n_failed: int


def judge_pairs(index: GraphIndex, pairs: Sequence[Pair]) -> list[CriterionFigures]:
    """Judge A against B by every criterion.

    Raises:
        PipelineError: no call can be answered, or the budget of the root is spent.
    """
    verdict_keys = [
        (criterion, place, is_swapped)
        for criterion in CRITERIA
        for place, (_, of_a, of_b) in enumerate(pairs)
        for is_swapped in (False, True)
        if of_a.strip() != of_b.strip()
    ]
    replies = request_all(
        index,
        SECTION,
        [_request_verdict(index, criterion, pairs[place], swap) for criterion, place, swap in verdict_keys],
    )
    verdicts: dict[tuple[str, int, bool], int | None] = {
        key: None if isinstance(reply, Failure) else reply.value
        for key, reply in zip(verdict_keys, replies, strict=True)
    }

    def both(criterion: str, place: int) -> tuple[int | None, int | None]:
        first, second = (verdicts.get((criterion, place, is_swapped), 0) for is_swapped in (False, True))
        return first, second

    places = range(len(pairs))
    return [count_verdicts(criterion, [both(criterion, place) for place in places]) for criterion in CRITERIA]


def count_verdicts(criterion: str, verdicts: Sequence[tuple[int | None, int | None]]) -> CriterionFigures:
    """Count (verdict with A first, verdict with B first): 1 or 2 for the answer in that place, 0 for neither."""
    whole = [(first, second) for first, second in verdicts if first is not None and second is not None]
    sign_of = {0: 0, 1: 1, 2: -1}
    signs = [sign_of[first] - sign_of[second] for first, second in whole]
    wins, losses = sum(sign > 0 for sign in signs), sum(sign < 0 for sign in signs)
    decided = [verdict for verdict in itertools.chain.from_iterable(whole) if verdict]
    return CriterionFigures(
        criterion=criterion,
        wins=wins,
        losses=losses,
        ties=len(whole) - wins - losses,
        win_rate=estimate_share([(1 + (sign > 0) - (sign < 0)) / 2 for sign in signs]),
        p_value=sign_test(wins, losses),
        first_share=estimate_share([float(verdict == 1) for verdict in decided]),
        n_failed=len(verdicts) - len(whole),
    )


def _request_verdict(index: GraphIndex, criterion: str, pair: Pair, is_swapped: bool) -> ChatRequest[int]:
    question, *answers = pair
    first, second = reversed(answers) if is_swapped else answers
    prompt = index.prompt("judge_answers")
    messages = open_question(
        prompt,
        AUTO,
        question,
        criterion=criterion,
        definition=CRITERIA[criterion],
        answer_1=as_data(first),
        answer_2=as_data(second),
    )
    read = partial(read_verdict, echoes=prompt.echoes)
    return ChatRequest(f"{criterion}: {question[:60]}", messages, read, VERDICT_FORMAT, limits=LIMITS)


def read_verdict(reply: str, echoes: PromptEchoes | None = None) -> int:
    """Read the verdict: 1 or 2 for the better answer, 0 for neither.

    Args:
        echoes: of the prompt; a verdict whose reason repeats it is copied, too. None accepts any reason.

    Raises:
        ReplyFormatError: the reply has no such number of the model's own.
    """
    for value in read_json(reply):
        fields = value if isinstance(value, dict) else {}
        if "winner" in fields:
            winner, reason = fields["winner"], fields.get("reason")
            if echoes and isinstance(reason, str) and echoes.holds(reason):
                raise ReplyFormatError(f"the reason {reason[:80]!r} repeats the prompt: say why, then choose")
            number = int(winner) if isinstance(winner, str) and winner.strip() in ("0", "1", "2") else winner
            if isinstance(number, bool) or number not in (0, 1, 2):
                raise ReplyFormatError(f"the winner is {str(winner)[:40]!r}, not 0, 1 or 2")
            return int(number)
    raise ReplyFormatError(f"no JSON object with a winner; the reply starts {reply[:80]!r}")


OnProgress = Callable[[str], None]
_PROGRESS_EVERY = 10
"""Questions between two lines of progress."""


@dataclass(frozen=True)
class ConditionFigures:
    """Usage of one condition over all questions.

    Attributes:
        calls: stored replies count like new ones.
        seconds: wall-clock time of all questions; a stored reply takes none.
        failed: answers that the embedded engine wrote because the model failed.
    """

    name: str
    calls: Meter
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
        judge=ConditionFigures("judge", judge.meter, 0.0, 0),
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
    return [answer.text for answer in answers], ConditionFigures(condition.name, metered.meter, seconds, n_failed)


def render_comparison(comparison: Comparison) -> list[str]:
    """Return lines of text: the verdicts, the control, and the usage of both conditions."""
    a, b = comparison.conditions
    lines = [f"A = {a.name}, B = {b.name}, {counted(comparison.n_questions, 'questions')}, each judged in both orders"]
    lines += _table("A against B", comparison.verdicts)
    lines += _table("A against A (control)", comparison.control)
    width = max(len("condition"), len(a.name), len(b.name))
    lines += ["", f"{'condition':{width}}  {'replies':>8}  {'tokens':>11}  {'USD':>9}  {'seconds':>8}  {'failed':>6}"]
    for row in (a, b, comparison.judge):
        cost = "unknown" if row.calls.unpriced else f"{row.calls.cost:.4f}"
        counts = f"{row.calls.replies:>8,}  {row.calls.tokens:>11,}  {cost:>9}  {row.seconds:>8.1f}  {row.failed:>6}"
        lines.append(f"{row.name:{width}}  {counts}")
    if b.calls.tokens:
        lines.append(f"A took {a.calls.tokens / b.calls.tokens:.1%} of the tokens of B")
    return lines


def _table(title: str, figures: Sequence[CriterionFigures]) -> list[str]:
    heading = f"{'A wins':>7}  {'B wins':>7}  {'ties':>5}  {'win rate of A':20}  {'p (sign test)':>13}  first"
    lines = ["", f"{title:26}{heading}"]
    for row in figures:
        rate, first = row.win_rate.render(), row.first_share.render(2)
        counts = f"{row.wins:>7}  {row.losses:>7}  {row.ties:>5}  {rate:20}  {row.p_value:>13.3f}"
        failed = f"  {row.n_failed} failed" if row.n_failed else ""
        lines.append(f"{row.criterion:26}{counts}  {first}{failed}")
    return lines


# --------------------------------------------------------------------------------------------------------------- raters


@dataclass(frozen=True)
class RaterFigures:
    """What one rater did over all questions; stored replies count like new ones."""

    name: str
    rated: int
    kept: int
    calls: Meter


@dataclass(frozen=True)
class RaterComparison:
    """Two raters of community reports on the same questions.

    Attributes:
        agreement: share of the reports rated by both that both find relevant, or both irrelevant.
        equal: share of these with the same rating, 0 to 5.
        kept_again: share of the reports kept by the first rater that the second keeps, too.
    """

    n_questions: int
    raters: tuple[RaterFigures, RaterFigures]
    agreement: Estimate
    equal: Estimate
    kept_again: Estimate

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare_raters(
    root: Root, index: GraphIndex, questions: Sequence[Question], names: Sequence[str]
) -> RaterComparison:
    """Choose the reports of global search by either rater: `embedded`, or the name of a chat model of the endpoint.

    Raises:
        PipelineError: global search is static, no rating can be had, or the budget is spent.
    """
    options = index.settings.search("global")
    if options.selection == "static":
        raise PipelineError("static selection rates no report; set `global_search.selection` to dynamic")
    found = []
    for name in names:
        engine, model = ("embedded", {}) if name == "embedded" else ("model", {"model": name})
        rating = index.settings.rating.model_copy(
            update={"engine": engine, "model": index.settings.rating.model | model}
        )
        other = root.counted_in()
        other.settings = index.settings.model_copy(update={"rating": rating})
        metered = MeteredIndex(type(index)(index.snapshot, other.settings, index.embedder, other))
        found.append((metered.meter, [rate_reports(metered, q.question, options) for q in questions]))
    rated = [[{r.row: r.rating for r in selection.rated} for selection in chosen] for _, chosen in found]
    kept = [[{r.row for r in selection.kept} for selection in chosen] for _, chosen in found]
    both = [(one[row], two[row]) for one, two in zip(*rated, strict=True) for row in one.keys() & two.keys()]
    figures = [
        RaterFigures(name, sum(map(len, of_rater)), sum(map(len, of_kept)), meter)
        for name, of_rater, of_kept, (meter, _) in zip(names, rated, kept, found, strict=True)
    ]
    return RaterComparison(
        n_questions=len(questions),
        raters=(figures[0], figures[1]),
        agreement=estimate_share([float((a >= options.threshold) == (b >= options.threshold)) for a, b in both]),
        equal=estimate_share([float(a == b) for a, b in both]),
        kept_again=estimate_share([float(row in two) for one, two in zip(*kept, strict=True) for row in one]),
    )


def render_raters(comparison: RaterComparison) -> list[str]:
    """Return lines of text: what both raters did, and how far they agree."""
    width = max(len("rater"), *(len(row.name) for row in comparison.raters))
    lines = [f"{'rater':{width}}  {'rated':>8}  {'kept':>8}  {'replies':>8}  {'tokens':>11}  {'USD':>9}"]
    for row in comparison.raters:
        cost = "unknown" if row.calls.unpriced else f"{row.calls.cost:.4f}"
        counts = f"{row.rated:>8,}  {row.kept:>8,}  {row.calls.replies:>8,}  {row.calls.tokens:>11,}  {cost:>9}"
        lines.append(f"{row.name:{width}}  {counts}")
    first, second = (row.name for row in comparison.raters)
    return [
        *lines,
        f"agree on relevance: {comparison.agreement.render()} of {comparison.agreement.n:,} reports rated by both",
        f"same rating: {comparison.equal.render()}",
        f"{second} keeps {comparison.kept_again.render()} of the reports that {first} keeps",
    ]
