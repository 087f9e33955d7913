"""What a command may say under faults, and what its answer may contain.

A finding is a violation of the promises of the documentation: a traceback, an error that the documentation does not
list for the faults of that moment, a quotation that no document ever contained, or another answer than before from the
same snapshot.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphrag_pipeline_tests.torture.documented import (
    CUT_FILE,
    DAMAGED_FILE,
    DAMAGED_OBJECT,
    is_documented,
    read_documented_errors,
)

TRACEBACK = "Traceback (most recent call last)"
_SAME = ("answer", "citations", "context", "method", "selection")
"""Parts of an answer that depend on snapshot and question alone."""


@dataclass(frozen=True)
class Ran:
    """A command that ended.

    Attributes:
        status: exit status; below 0 if a signal ended it.
        was_killed: whether the torture ended it.
        causes: the faults of its time (`documented.py`).
        note: the damage, for messages.
    """

    arguments: tuple[str, ...]
    status: int
    out: str
    err: str
    was_killed: bool = False
    causes: frozenset[str] = frozenset()
    note: str = ""


class Oracle:
    """The judge of a run; it remembers all answers.

    Args:
        was_said: whether a document ever contained a quotation.
    """

    def __init__(self, was_said: Callable[[str], bool]) -> None:
        self._was_said = was_said
        self._known_errors = read_documented_errors()
        self._answers: dict[tuple[str, ...], str] = {}

    def find_violation(self, ran: Ran) -> str | None:
        """Return what a command did against the promises, or None."""
        if TRACEBACK in ran.err or TRACEBACK in ran.out:
            return "a traceback"
        if ran.was_killed:
            return None
        if ran.status == -signal.SIGBUS and CUT_FILE in ran.causes:
            return None
        if ran.status < 0:
            return f"ended by signal {-ran.status}"
        if ran.status == 0:
            return self._judge_answers(ran)
        if ran.arguments[0] == "verify" and "damaged " in ran.out:
            is_explained = {DAMAGED_FILE, DAMAGED_OBJECT if "--store" in ran.arguments else DAMAGED_FILE} & ran.causes
            return None if is_explained else "it reports damage where there is none"
        if ran.arguments[0] == "batch" and ran.out:
            return self._judge_answers(ran)
        messages = [line for line in ran.err.splitlines() if line.startswith("error: ")]
        if not messages:
            return f"exit status {ran.status} without a line that starts with 'error: '"
        return None if is_documented(ran.err, ran.causes, self._known_errors) else "an error without a cause"

    def _judge_answers(self, ran: Ran) -> str | None:
        if ran.arguments[0] not in ("query", "batch"):
            return None
        is_query = ran.arguments[0] == "query"
        options = dict(zip(ran.arguments[2:-1:2], ran.arguments[3:-1:2], strict=True)) if is_query else {}
        answers = []
        for line in [ran.out] if is_query else ran.out.removesuffix("\n").split("\n"):
            try:
                answers.append(json.loads(line))
            except ValueError as error:
                return f"an answer that is not JSON ({error}): {line[:300]!r}"
        strategy = options.get("--strategy", "")
        found = (
            self._judge_failure(answer["error"], ran) if "error" in answer else self._judge_answer(answer, strategy)
            for answer in answers
        )
        return next(filter(None, found), None)

    def _judge_failure(self, message: str, ran: Ran) -> str | None:
        """Judge the record of a question of a batch that failed."""
        is_known = is_documented(message, ran.causes, self._known_errors)
        return None if is_known else f"a question without an answer and without a cause: {message}"

    def _judge_answer(self, answer: dict[str, Any], strategy: str) -> str | None:
        for citation in answer["citations"]:
            if not self._was_said(citation["quote"]):
                return f"a quotation that no document contained: {citation['quote']!r}"
        key = (answer["snapshot"], answer["question"], answer["method"], strategy)
        present = json.dumps({name: answer[name] for name in _SAME}, sort_keys=True)
        before = self._answers.setdefault(key, present)
        return None if before == present else f"another answer from the same snapshot; before: {before}"
