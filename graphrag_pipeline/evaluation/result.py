"""Result of a measurement on gold questions: figures, paired differences, and both as text and as plain values.

Keep out: measuring (`measurement.py`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from graphrag_pipeline.evaluation.answer_figures import (
    AnswerFigures,
    compare_answers,
    list_changed,
    name_failures,
    render_answers,
)
from graphrag_pipeline.evaluation.confidence import PairedDifference
from graphrag_pipeline.evaluation.questions import Question, find_repeated
from graphrag_pipeline.evaluation.retrieval_figures import RetrievalFigures, compare_retrieval, render_figures
from graphrag_pipeline.text.counted import counted

_MAX_REPEATED = 3


@dataclass(frozen=True)
class Measured:
    """Figures of some methods on one snapshot; either part may be empty."""

    retrieval: tuple[RetrievalFigures, ...] = ()
    answers: tuple[AnswerFigures, ...] = ()


@dataclass(frozen=True)
class Evaluation:
    """Figures of an index on gold questions.

    Attributes:
        with_evidence, with_answers: the questions that measure retrieval and answers.
        unknown_evidence: "place: name" of evidence that the snapshot does not have.
        against: the snapshot or method compared with; "" without a comparison.
        other: its figures, one for each of `figures`.
        unmeasured: why reference answers were not used; "" if they were, or if no question has one.
        same: names of measured methods that are the one compared with; they have no difference.
    """

    snapshot: str
    k: int
    with_evidence: tuple[Question, ...]
    with_answers: tuple[Question, ...]
    figures: Measured
    unknown_evidence: tuple[str, ...] = ()
    against: str = ""
    other: Measured = field(default_factory=Measured)
    unmeasured: str = ""
    same: frozenset[str] = frozenset()

    def differences(self) -> dict[str, list[PairedDifference]]:
        """Return the paired differences of each method from what it is compared with, by method."""
        found: dict[str, list[PairedDifference]] = {}
        for one, other in zip(self.figures.retrieval, self.other.retrieval, strict=False):
            found.setdefault(one.method, []).extend(compare_retrieval(one, other))
        for answers, others in zip(self.figures.answers, self.other.answers, strict=False):
            found.setdefault(answers.method, []).extend(compare_answers(answers, others))
        return {method: rows for method, rows in found.items() if method not in self.same}

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, dictionaries, strings and numbers."""
        record: dict[str, Any] = {
            "snapshot": self.snapshot,
            "figures": [row.to_dict() for row in self.figures.retrieval],
            "answers": [row.to_dict() for row in self.figures.answers],
            "unknown_evidence": list(self.unknown_evidence),
            "failed_judgements": self.list_failures(),
            "repeated_questions": find_repeated(list(dict.fromkeys((*self.with_evidence, *self.with_answers)))),
        }
        if not self.against:
            return record
        return record | {
            "against": self.against,
            "figures_against": [row.to_dict() for row in self.other.retrieval],
            "answers_against": [row.to_dict() for row in self.other.answers],
            "differences": {method: [asdict(d) for d in rows] for method, rows in self.differences().items()},
        }

    def render(self) -> list[str]:
        """Return lines of text: the tables, the differences, and what was measured."""
        lines: list[str] = []
        if self.figures.retrieval:
            subject = _count(self.with_evidence, "with evidence")
            lines += [*render_figures(self.figures.retrieval), subject, ""]
        if self.figures.answers:
            subject = _count(self.with_answers, "with reference answers")
            lines += [*render_answers(self.figures.answers), subject, ""]
        return lines + self._render_differences()

    def _render_differences(self) -> list[str]:
        lines = []
        for method, rows in self.differences().items():
            lines.append(f"{method} minus {self.against}: mean difference, questions won, lost, tied, sign test")
            for row in rows:
                counts = f"{row.wins:>4} {row.losses:>4} {row.ties:>4}  p {row.p_value:.3f}"
                lines.append(f"  {row.figure:16}  {row.difference.render(sign='+'):26}  {counts}")
        for answers, others in zip(self.figures.answers, self.other.answers, strict=False):
            changed = [] if answers.method in self.same else list_changed(self.with_answers, answers, others)
            lines += [f"{answers.method}: largest changes of token F1", *changed] if changed else []
        return [*lines, ""] if lines else []

    def list_failures(self) -> list[str]:
        """Return lines that name each judgement without a usable reply."""
        rows = (*self.figures.answers, *self.other.answers)
        return list(dict.fromkeys(line for row in rows for line in name_failures(self.with_answers, row)))


def _count(questions: tuple[Question, ...], what: str) -> str:
    repeated = find_repeated(questions)
    named = ", ".join(repeated[:_MAX_REPEATED]) + (" and others" if len(repeated) > _MAX_REPEATED else "")
    note = f"; asked before, and each counts: {named}" if repeated else ""
    return f"{counted(len(questions), 'questions')} {what}{note}"
