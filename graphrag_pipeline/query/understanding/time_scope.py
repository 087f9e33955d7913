"""Time scope of a question: filters that select the documents of the time that the question names.

"The last two weeks" reads only the documents of these weeks. Now is the date of the newest document, or `now` of the
settings, so an answer does not depend on the day of the search. All documents are read, and a note in the answer says
so, if no document has a date, if no document is of that time, or if no document of that time contains the entity that
the question names. Keep out: the meaning of a phrase (`time_phrases.py`).
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
from graphrag_pipeline.text.counted import counted

ANY_DAY = date(2000, 1, 1)
"""Now, if no document has a date; then only the words of the phrase matter."""
TimeAccount = dict[str, str | int | None]
WIDER_DAYS = 365
"""Days that "latest news" about a name reads if the first `RECENT_DAYS` do not contain the name."""


@dataclass(frozen=True)
class TimeScope:
    """A question without its time phrase, and the filters for that time.

    Attributes:
        question: without the time phrase, if the filters select documents by it.
        filters: those that select the documents.
        account: {"time": {"phrase", "from", "to", "now", "documents"}}, with "dropped" if all documents are
            read; empty without a phrase.
        note: sentence about the time for the answer; "" for none.
    """

    question: str
    filters: tuple[str, ...] = ()
    account: dict[str, Any] = field(default_factory=dict)
    note: str = ""

    def add_note(self, answer: Answer) -> Answer:
        """Return an answer with the note below its text."""
        return replace(answer, text=f"{answer.text}\n\n{self.note}") if answer.text and self.note else answer


def read_time_scope(index: IndexReader, question: str, now: date | None = None) -> TimeScope:
    """Return the time scope of a question.

    Args:
        index: with the user's filters applied.
        now: None: the date of the newest document.
    """
    if not has_time_phrase(question):
        return TimeScope(question)
    dates = read_dates(index.document_fields)
    today = now or (dates.newest if dates else None)
    phrase = read_time_phrase(question, today or ANY_DAY)
    if phrase is None:
        return TimeScope(question)
    if dates is None or today is None:
        question_read = phrase.rest if phrase.is_all and not is_overview(question) else question
        return _drop(question_read, {"phrase": phrase.text}, "no document has a date", needs_note=phrase.is_all)
    dropped = ""
    for span in _spans(phrase):
        filters = _filters_of(dates.field, span)
        account = _phrase_account(span, today)
        view = index.where(filters)
        n_documents = view.document_mask.n_documents if view.document_mask else 0
        dropped = _why_not(index, view, span, n_documents)
        if not dropped:
            read = counted(n_documents, "documents")
            note = f"Time: “{span.text}” is {_written(span)}{_since(dates, today)}; read: {read}."
            return TimeScope(span.rest, filters, {"time": {**account, "documents": n_documents}}, note)
    needs_note = phrase.is_all or dates.overlap(phrase.start, phrase.end)  # else the date is the question's topic
    question_read = phrase.rest if phrase.is_all or phrase.is_relative else question
    return _drop(question_read, account, f"{dropped}{_since(dates, today)}", needs_note)


def _drop(question: str, account: TimeAccount, why: str, needs_note: bool) -> TimeScope:
    """Return the scope of all documents, with the reason."""
    note = f"Time: {why}; all documents were read." if needs_note else ""
    return TimeScope(question, account={"time": {**account, "dropped": why}}, note=note)


def _spans(phrase: TimePhrase) -> Iterator[TimePhrase]:
    """Yield the phrase, and after it a wider one if it is not about certain days."""
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
    """Return why the documents of a time are not read alone; "" if they are."""
    if not n_documents:
        return f"no document has a date of {_written(phrase)} (“{phrase.text}”)"
    if index.names.find(phrase.rest) and not view.names.find(phrase.rest):
        return f"no document of {_written(phrase)} (“{phrase.text}”) contains the name"
    return ""


def _written(phrase: TimePhrase) -> str:
    """Return the days of a phrase, such as "2026-05-18 to 2026-05-31"."""
    if phrase.start and phrase.end:
        return f"{phrase.start} to {phrase.end}" if phrase.start != phrase.end else str(phrase.start)
    return f"from {phrase.start} on" if phrase.start else f"up to {phrase.end}"


def _since(dates: DocumentDates, now: date) -> str:
    return f" (now: {now}, the newest document)" if now == dates.newest else f" (now: {now})"
