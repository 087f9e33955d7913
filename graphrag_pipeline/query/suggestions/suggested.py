"""The values of suggested questions.

The JSON form (`SuggestedQuestions.to_dict`) is a contract with users: add keys, never rename one. Keep out: how the
questions are found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from graphrag_pipeline.query.question import fold_question
from graphrag_pipeline.query.token_budget import QueryUsage

MAX_QUESTIONS = 20
"""Most questions of one request."""


@dataclass(frozen=True)
class OpenRecord:
    """A record that a suggested question asks about.

    Attributes:
        kind: entity or report.
        number: its human-readable id.
    """

    kind: str
    number: int
    title: str


@dataclass(frozen=True)
class SuggestedQuestion:
    """A question that a user might ask next.

    Attributes:
        about: the records that it asks about; of a question that a model wrote, the entities that it names.
    """

    question: str
    about: tuple[OpenRecord, ...] = ()


@dataclass(frozen=True)
class SuggestedQuestions:
    """Questions that a user might ask next, best first.

    Attributes:
        engine: "embedded" or "model", whichever wrote them.
        failure: why a model gave none, so that the embedded engine did; "" otherwise.
        snapshot: id of the index that was read.
        seconds: with the index open.
    """

    questions: tuple[SuggestedQuestion, ...]
    engine: str
    failure: str
    snapshot: str
    seconds: float
    usage: QueryUsage = field(default_factory=QueryUsage)

    @property
    def texts(self) -> list[str]:
        """The questions alone."""
        return [one.question for one in self.questions]

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, dictionaries, strings and numbers."""
        return {
            "questions": [_to_dict(one) for one in self.questions],
            "engine": self.engine,
            "failure": self.failure,
            "usage": self.usage.to_dict(),
            "seconds": self.seconds,
            "snapshot": self.snapshot,
        }


def _to_dict(one: SuggestedQuestion) -> dict[str, Any]:
    return {"question": one.question, "about": [asdict(record) for record in one.about]}


def without_asked(found: Sequence[SuggestedQuestion], asked: Sequence[str], n: int) -> tuple[SuggestedQuestion, ...]:
    """Return the first `n` questions, each once, without those that were asked already, whatever their spelling."""
    seen, kept = {fold_question(text) for text in asked}, list[SuggestedQuestion]()
    for one in found:
        folded = fold_question(one.question)
        if folded not in seen:
            kept.append(one)
        seen.add(folded)
    return tuple(kept[:n])
