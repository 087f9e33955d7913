"""Figures of answers to evaluation questions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.answer_judging import JudgedAnswer, Judgement, MeteredIndex, judge_answers
from graphrag_pipeline.evaluation.conditions import Condition, ConditionAnswer, answer_question
from graphrag_pipeline.evaluation.confidence import Estimate, PairedDifference, compare_pairs, estimate_share
from graphrag_pipeline.evaluation.questions import Question, measure_overlap
from graphrag_pipeline.models.metering import Meter
from graphrag_pipeline.query.answers.notes import strip_notes
from graphrag_pipeline.settings.search_names import SEARCH_METHODS
from graphrag_pipeline.text.counted import counted

if TYPE_CHECKING:
    from graphrag_pipeline.query.index.graph_index import GraphIndex

_MARKER = re.compile(r"\s?\[\d+\]")
_MARKDOWN = re.compile(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}|^#+\s+|^\s*[-*+]\s+", re.MULTILINE)
_QUOTED_LINE = re.compile(r"^- (.*)$", re.MULTILINE)
_REPLACED = re.compile(r"\AThe model gave no answer \(.*?\); the embedded engine answers instead\.\s*", re.DOTALL)
_SURE = re.compile(
    r"\W*(?:not in the index|no answer in what could be read|nothing in the index|not answered:|unanswerable\b|"
    r"(?:i am|i'm) sorry,? but i am unable to answer this question given the provided data)",
    re.IGNORECASE,
)


def declines(answer: str) -> bool:
    """Whether an answer begins with the words of this package or of Microsoft GraphRAG for having none.

    The prompts ask a model for these words; a refusal in other words counts if a judge recognizes it.
    """
    text = _REPLACED.sub("", answer).replace("\u2019", "'").strip().replace("**", "")
    return _SURE.match(text) is not None


def answer_body(answer: str, engine: str) -> str:
    """Return what an answer says, as plain text: of the embedded engine, its passages, one a line."""
    passages = quoted_passages(answer, engine)
    return "\n".join(passages) if passages else _plain(strip_notes(_REPLACED.sub("", answer)))


def quoted_passages(answer: str, engine: str) -> list[str] | None:
    """Return the passages of an extractive answer as plain text, in order; None if a model answered."""
    return [_plain(line) for line in _QUOTED_LINE.findall(answer)] if _is_embedded(answer, engine) else None


def _plain(text: str) -> str:
    return _MARKDOWN.sub("", _MARKER.sub("", text)).strip()


def _is_embedded(answer: str, engine: str) -> bool:
    return engine == "embedded" or _REPLACED.match(answer) is not None


DEFAULT_METHODS = tuple(SEARCH_METHODS)
"""Every search method with its settings."""
OnProgress = Callable[[str], None]
FIGURES = {
    "f1": "token F1",
    "rouge_l": "ROUGE-L",
    "contained": "contained",
    "in_first": "in first",
    "in_three": "in three",
    "declined_rightly": "declined rightly",
    "declined_wrongly": "declined wrongly",
    "covered_claims": "covered claims",
    "precision": "precision",
    "faithfulness": "faithfulness",
    "seconds": "seconds",
}
"""Figure of an answer -> its heading."""
JUDGED = ("covered_claims", "precision", "faithfulness")
"""Figures by a model's judgement."""
IN_PASSAGES = ("in_first", "in_three")
"""Figures of extractive answers alone."""
PAIRED = ("f1", "rouge_l", "contained", *IN_PASSAGES, *JUDGED)
"""Figures that two measurements are compared by; more is better."""
_MAX_NAMED = 3
MAX_ANSWER_CHARS = 400
"""Characters of an answer that a review shows: a short paragraph."""


def shorten(text: str, max_chars: int) -> str:
    """Return the beginning of a text in one line."""
    line = " ".join(text.split())
    return line if len(line) <= max_chars else f"{line[:max_chars]}..."


@dataclass(frozen=True)
class AnswerScores:
    """Figures of one answer, 0-1 but for seconds; null where a figure does not apply or a judgement failed.

    Attributes:
        judgement_failures: judgements without a usable reply, such as "faithfulness".
        is_replaced: the model failed and the embedded engine answered.
        answer: what a model answered, as a review shows it; "" of the embedded engine, which gives it again for free.
    """

    f1: float
    rouge_l: float
    contained: float
    declined_rightly: float | None
    declined_wrongly: float | None
    seconds: float
    in_first: float | None = None
    in_three: float | None = None
    covered_claims: float | None = None
    precision: float | None = None
    faithfulness: float | None = None
    judgement_failures: tuple[str, ...] = ()
    is_replaced: bool = False
    answer: str = ""


@dataclass(frozen=True)
class AnswerFigures:
    """Figures of one way to answer.

    Attributes:
        answers: one for each question, in order.
        answering: calls for the answers; `judging` those of the judge. Stored replies count like new ones.
        judge: name of the judging model; "" if no model judged.
    """

    method: str
    answers: tuple[AnswerScores, ...]
    answering: Meter
    judging: Meter
    judge: str = ""

    def values(self, figure: str) -> list[float | None]:
        """Return a figure of each answer, in the order of the questions."""
        return [getattr(answer, figure) for answer in self.answers]

    def estimates(self) -> dict[str, Estimate]:
        """Return the mean of each figure with its confidence interval, over the answers that have it."""
        return {name: estimate_share([v for v in self.values(name) if v is not None]) for name in FIGURES}

    def to_dict(self) -> dict[str, Any]:
        estimates = {name: asdict(value) for name, value in self.estimates().items()}
        return {**asdict(self), "estimates": estimates, "n_failed_judgements": len(self.failed_judgements())}

    def failed_judgements(self) -> list[tuple[int, str]]:
        """Return (place of the question, judgement) of each judgement without a usable reply."""
        return [(place, name) for place, one in enumerate(self.answers) for name in one.judgement_failures]


def measure_answers(
    index: GraphIndex,
    questions: Sequence[Question],
    methods: Sequence[Condition],
    is_judged: bool = False,
    on_progress: OnProgress = lambda line: None,
) -> list[AnswerFigures]:
    """Answer the questions by each method and compare the answers with the reference answers.

    Args:
        questions: each with a reference answer.
        is_judged: whether the chat model of `evaluation` judges claims and faithfulness.

    Raises:
        PipelineError: an option does not validate, a judge is wanted and no model is named, no call to a model can be
            answered, or the budget of the root is spent.
    """
    judge = index.settings.chat_model_for("evaluation").model if is_judged else ""
    if is_judged and not judge:
        raise PipelineError("a chat model judges the answers; set `chat_model.model` or `evaluation.model`")
    for condition in methods:
        condition.settings_of(index)
    return [_measure(index, questions, condition, judge, on_progress) for condition in methods]


def _measure(
    index: GraphIndex, questions: Sequence[Question], condition: Condition, judge: str, on_progress: OnProgress
) -> AnswerFigures:
    metered, judging = MeteredIndex(index), MeteredIndex(index)
    given = [answer_question(condition, metered, question.question) for question in questions]
    on_progress(f"{condition.name}: answered {counted(len(given), 'questions')}")
    declined = [declines(answer.text) for answer in given]
    judged = [Judgement()] * len(given)
    if judge:
        judged = judge_answers(judging, [_to_judge(*each) for each in zip(questions, given, declined, strict=True)])
        on_progress(f"{condition.name}: judged {len(given):,} answers")
    scores = (_score(*each) for each in zip(questions, given, declined, judged, strict=True))
    return AnswerFigures(condition.name, tuple(scores), metered.meter, judging.meter, judge)


def _to_judge(question: Question, answer: ConditionAnswer, is_declined: bool) -> JudgedAnswer:
    body = "" if is_declined else answer_body(answer.text, answer.engine)
    references = () if question.is_unanswerable else question.answers
    return JudgedAnswer(question.question, references, body, answer.context)


def _score(question: Question, answer: ConditionAnswer, is_declined: bool, judged: Judgement) -> AnswerScores:
    is_declined = is_declined or judged.declines
    body = answer_body(answer.text, answer.engine)
    if question.is_unanswerable or is_declined:
        f1 = rouge = contained = float(question.is_unanswerable and is_declined)
    else:
        found = measure_overlap(body, question.answers, question.question)
        f1, rouge, contained = found.f1, found.rouge_l, float(found.is_contained)
    return AnswerScores(
        f1=f1,
        rouge_l=rouge,
        contained=contained,
        declined_rightly=float(is_declined) if question.is_unanswerable else None,
        declined_wrongly=None if question.is_unanswerable else float(is_declined),
        seconds=answer.seconds,
        in_first=_is_in_passages(question, answer, 1),
        in_three=_is_in_passages(question, answer, 3),
        covered_claims=judged.covered_claims,
        precision=judged.precision,
        faithfulness=judged.faithfulness,
        judgement_failures=tuple(judged.failures),
        is_replaced=bool(answer.failure),
        answer="" if _is_embedded(answer.text, answer.engine) else shorten(body, MAX_ANSWER_CHARS),
    )


def _is_in_passages(question: Question, answer: ConditionAnswer, n: int) -> float | None:
    """Return 1 if the first n passages of an extractive answer hold a reference answer, else 0; None of any other."""
    passages = quoted_passages(answer.text, answer.engine)
    if question.is_unanswerable or passages is None:
        return None
    return float(any(measure_overlap(one, question.answers, question.question).is_contained for one in passages[:n]))


def compare_answers(figures: AnswerFigures, others: AnswerFigures) -> list[PairedDifference]:
    """Compare two measurements of the same questions, question by question.

    Figures of passages are left out if no question has them in both.
    """
    names = [name for name in PAIRED if name not in JUDGED or (figures.judge and others.judge)]
    rows = {name: compare_pairs(FIGURES[name], figures.values(name), others.values(name)) for name in names}
    return [row for name, row in rows.items() if name not in IN_PASSAGES or row.difference.n]


def list_changed(questions: Sequence[Question], figures: AnswerFigures, others: AnswerFigures) -> list[str]:
    """Return lines that name the questions whose token F1 differs most: the best gains, then the worst losses."""
    pairs = zip(questions, figures.answers, others.answers, strict=True)
    changes = [(one.f1 - other.f1, question.question) for question, one, other in pairs]
    gains = sorted((change for change in changes if change[0] > 0), reverse=True)[:_MAX_NAMED]
    losses = sorted(change for change in changes if change[0] < 0)[:_MAX_NAMED]
    return [f"  {change:+.3f}  {question[:100]}" for change, question in (*gains, *losses)]


# ------------------------------------------------------------------------------------------------------------ rendering


def render_answers(figures: Sequence[AnswerFigures]) -> list[str]:
    """Return lines of a table: each mean with its confidence interval, one row for each method."""
    rows = [row.estimates() for row in figures]
    names = [name for name in FIGURES if any(row[name].n for row in rows)]
    width = max(len("method"), *(len(row.method) for row in figures))
    lines = [f"{'method':{width}}  " + "  ".join(f"{FIGURES[name]:20}" for name in names).rstrip()]
    for row, found in zip(figures, rows, strict=True):
        lines.append(f"{row.method:{width}}  " + "  ".join(f"{found[name].render():20}" for name in names).rstrip())
    return lines + [line for row in figures for line in _notes(row)]


def _notes(figures: AnswerFigures) -> list[str]:
    """Return lines about failures and the cost of models."""
    lines = []
    if n_replaced := sum(answer.is_replaced for answer in figures.answers):
        lines.append(f"{figures.method}: the model failed on {n_replaced:,} answers; the embedded engine wrote them")
    for what, calls in (("answers", figures.answering), ("judgements", figures.judging)):
        if calls.replies:
            cost = "cost unknown" if calls.unpriced else f"{calls.cost:.4f} USD"
            lines.append(f"{figures.method}: {what} took {calls.replies:,} replies, {calls.tokens:,} tokens, {cost}")
    return lines


def name_failures(questions: Sequence[Question], figures: AnswerFigures) -> list[str]:
    """Return lines that name each judgement without a usable reply."""
    return [
        f"{figures.method}: no judgement of {name} for {questions[place].question[:80]!r}; the mean leaves it out"
        for place, name in figures.failed_judgements()
    ]
