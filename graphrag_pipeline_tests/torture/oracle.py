"""What a command may say under faults, and what its answer may contain.

A finding is a violation of the promises of the documentation: a traceback, an error without a documented cause, a
quotation that no document ever contained.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

TRACEBACK = "Traceback (most recent call last)"


@dataclass(frozen=True)
class Ran:
    """A command that ended.

    Attributes:
        status: exit status; below 0 if a signal ended it.
        was_killed: whether the torture ended it.
        excuse: the fault under way on its machine, which a documented error may name; "" if there was none.
    """

    arguments: tuple[str, ...]
    status: int
    out: str
    err: str
    was_killed: bool = False
    excuse: str = ""


def find_violation(ran: Ran, was_said: Callable[[str], bool]) -> str | None:
    """Return what a command did against the promises, or None.

    Args:
        was_said: whether a document ever contained a quotation.
    """
    if TRACEBACK in ran.err or TRACEBACK in ran.out:
        return "a traceback"
    if ran.was_killed:
        return None
    if ran.status < 0:
        return f"ended by signal {-ran.status}"
    if ran.status == 0:
        return _find_invention(ran, was_said)
    if not any(line.startswith("error: ") for line in ran.err.splitlines()):
        return f"exit status {ran.status} without a line that starts with 'error: '"
    return None if ran.excuse or _is_documented(ran.err) else "an error without a cause"


def _find_invention(ran: Ran, was_said: Callable[[str], bool]) -> str | None:
    if ran.arguments[0] != "query":
        return None
    try:
        answer = json.loads(ran.out)
    except ValueError:
        return "an answer that is not JSON"
    quotes = [citation["quote"] for citation in answer["citations"]]
    return next((f"a quotation that no document contained: {quote!r}" for quote in quotes if not was_said(quote)), None)


_DOCUMENTED = (
    "no index is published",  # before the first publication
    "nothing is published",
    "another process is",  # two writers
    "is writing",
    "is pinned",  # a publication during a rollback
    "is no snapshot",  # a snapshot that was pruned in the meantime
    "has no snapshot",
    "no earlier snapshot",
)
"""Parts of errors that are right without any fault."""


def _is_documented(message: str) -> bool:
    return any(part in message for part in _DOCUMENTED)
