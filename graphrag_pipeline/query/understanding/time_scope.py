"""The documents that a question's time phrase speaks of, as filters: "the last two weeks" reads their documents alone.

Now is the date of the newest document, or what `now` of the settings says, so that an answer does not depend on the
day it is asked. Where no document has a date, none is of that time, or none of that time says a name that the question
says, all documents are read, and the answer tells so. Keep out: what a phrase means (`time_phrases.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_overview
from graphrag_pipeline.query.results import Answer
from graphrag_pipeline.query.understanding.document_dates import DocumentDates, read_dates
from graphrag_pipeline.query.understanding.time_phrases import TimePhrase, has_time_phrase, read_time_phrase

ANY_DAY = date(2000, 1, 1)
"""Where no document has a date, only the words of a phrase count."""
TimeAccount = dict[str, str | int | None]
WIDER_DAYS = 365
"""How far "latest news" about a name goes back where the first days say nothing of it."""


@dataclass(frozen=True)
class TimeScope:
    """What a question asks about the documents of a time.

    Attributes:
        question: without the time phrase, where documents are chosen by it.
        filters: those that choose them.
        account: {"time": {"phrase", "from", "to", "now", "documents"}}, with "dropped" where all documents are read;
            empty without a phrase.
        note: what the answer tells of it.
    """

    question: str
    filters: tuple[str, ...] = ()
    account: dict[str, Any] = field(default_factory=dict)
    note: str = ""

    def add_note(self, answer: Answer) -> Answer:
        """An answer with the note under it."""
        return replace(answer, text=f"{answer.text}\n\n{self.note}") if answer.text and self.note else answer


def read_time_scope(index: IndexReader, question: str, now: date | None = None) -> TimeScope:
    """Which documents a question speaks of by its time phrase.

    Args:
        index: as filters leave it.
        now: None is the date of the newest document of the snapshot.
    """
    if not has_time_phrase(question):
        return TimeScope(question)
    dates = read_dates(index.document_fields)
    today = now or (dates.newest if dates else None)
    phrase = read_time_phrase(question, today or ANY_DAY)
    if phrase is None:
        return TimeScope(question)
    if dates is None or today is None:
        asked = phrase.rest if phrase.is_all and not is_overview(question) else question
        return _drop(asked, {"phrase": phrase.text}, "no document has a date", needs_note=phrase.is_all)
    dropped = ""
    for span in _spans(phrase):
        filters = _filters_of(dates.field, span)
        account = _phrase_account(span, today)
        view = index.where(filters)
        n_documents = view.document_mask.n_documents if view.document_mask else 0
        dropped = _why_not(index, view, span, n_documents)
        if not dropped:
            note = f"Time: “{span.text}” is {_written(span)}{_since(dates, today)}; read: {_count(n_documents)}."
            return TimeScope(span.rest, filters, {"time": {**account, "documents": n_documents}}, note)
    needs_note = phrase.is_all or dates.overlap(phrase.start, phrase.end)  # else the date is what the question is about
    asked = phrase.rest if phrase.is_all or phrase.is_relative else question
    return _drop(asked, account, f"{dropped}{_since(dates, today)}", needs_note)


def _drop(asked: str, account: TimeAccount, why: str, needs_note: bool) -> TimeScope:
    """All documents are read."""
    note = f"Time: {why}; all documents were read." if needs_note else ""
    return TimeScope(asked, account={"time": {**account, "dropped": why}}, note=note)


def _spans(phrase: TimePhrase) -> Iterator[TimePhrase]:
    """The days to try in turn."""
    yield phrase
    if phrase.is_soft and phrase.end:
        yield replace(phrase, start=phrase.end - timedelta(days=WIDER_DAYS - 1))


def _filters_of(name: str, phrase: TimePhrase) -> tuple[str, ...]:
    first = (f"{name}>={phrase.start.isoformat()}",) if phrase.start else ()
    last = (f"{name}<={phrase.end.isoformat()}",) if phrase.end else ()
    return first + last


def _phrase_account(phrase: TimePhrase, now: date) -> TimeAccount:
    ends = {"from": phrase.start, "to": phrase.end, "now": now}
    return {"phrase": phrase.text, **{name: day.isoformat() if day else None for name, day in ends.items()}}


def _why_not(index: IndexReader, view: IndexReader, phrase: TimePhrase, n_documents: int) -> str:
    """Why the documents of a time are not read alone; "" where they are."""
    if not n_documents:
        return f"no document is of {_written(phrase)} (“{phrase.text}”)"
    if index.names.find(phrase.rest) and not view.names.find(phrase.rest):
        return f"no document of {_written(phrase)} (“{phrase.text}”) says the name"
    return ""


def _written(phrase: TimePhrase) -> str:
    """Such as "2026-05-18 to 2026-05-31"."""
    if phrase.start and phrase.end:
        return f"{phrase.start} to {phrase.end}" if phrase.start != phrase.end else str(phrase.start)
    return f"from {phrase.start} on" if phrase.start else f"up to {phrase.end}"


def _since(dates: DocumentDates, now: date) -> str:
    return f" (now: {now}, the newest document)" if now == dates.newest else f" (now: {now})"


def _count(n: int) -> str:
    return f"{n:,} document{'s' * (n != 1)}"
