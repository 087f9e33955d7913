"""Notes under a model's answer: what could not be read, and sentences without a citation.

A note is a paragraph in brackets, so that a reader, and an evaluation, can tell it from the answer. Keep out: finding
what is noted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from graphrag_pipeline.query.results import Answer, UncitedSentence, Unread
from graphrag_pipeline.text.late_patterns import late_re

UNCITED = "\n\n(No statement of this answer cites a record of the index.)"
BESIDE = "\n\nThe embedded engine answers from the index:\n\n"
PARTIAL = "No answer in what could be read"
NOT_IN_INDEX = "Not in the index"

_START = late_re(
    r"\n\n\((?:No statement of this answer|Found in what was read|Not found in what was read|"
    rf"\d+ of \d+ [^\n]{{1,80}} could not be (?:read|rated))|{re.escape(BESIDE)}"
)


def strip_notes(text: str) -> str:
    """Return the text of an answer without the notes under it."""
    start = _START.search(text)
    return text[: start.start()] if start else text


def note_unread(unread: Unread | None) -> str:
    """Return the note on what could not be read; "" if all could."""
    return f"\n\n({unread.describe()}.)" if unread else ""


def note_uncited(sentences: Sequence[UncitedSentence]) -> str:
    """Return the notes on sentences without a citation: first those that a text supports, then the others."""
    found = "; ".join(f"\u201c{one.text}\u201d [{one.citation}]" for one in sentences if one.citation)
    others = "; ".join(f"\u201c{one.text}\u201d" for one in sentences if not one.citation)
    return (f"\n\n(Found in what was read: {found})" if found else "") + (
        f"\n\n(Not found in what was read: {others})" if others else ""
    )


def replaced_answer(extractive: Answer, reason: str, unread: Unread | None = None) -> Answer:
    """Return the embedded engine's answer in place of a model's, with the reason.

    Args:
        unread: what the model could not read; then the answer does not say that the index has none.
    """
    own = partial_text(extractive.text) if unread else extractive.text
    note = note_unread(unread) if unread and unread.n_failed < unread.n_parts else ""  # else the reason says it
    text = f"The model gave no answer ({reason}); the embedded engine answers instead.\n\n{own}{note}"
    return replace(extractive, text=text, failure=reason, unread=unread)


def partial_text(text: str) -> str:
    """Return the text of an answer that does not say that the index has none, since parts of it were not read."""
    return text.replace(NOT_IN_INDEX, PARTIAL, 1) if text.startswith(NOT_IN_INDEX) else text


def is_uncited(answer: Answer) -> bool:
    """Return whether a model's answer says that none of its statements cites a record."""
    return not answer.citations and UNCITED in answer.text


def stand_beside(answer: Answer, extractive: Answer) -> Answer:
    """Return a model's answer that cites nothing, and under it the embedded engine's with its citations."""
    return replace(answer, text=f"{answer.text}{BESIDE}{extractive.text}", citations=extractive.citations)
