"""Parser of the reports that models write: lenient JSON, local record numbers mapped back to stable ids.

A report needs a summary and a finding. Other defects are repaired. A rating outside 0 to 10 is clipped. A rating that
is not a number becomes `MIDDLE_RATING`. A finding without text is left out. A missing title is replaced by the names of
the central entities. A citation of a number that is not in the prompt is invented: it is removed and counted.

A value that repeats the prompt (`models/prompt_echoes.py`) counts as missing, and so does a rating so explained. Of a
longer text, the sentences that repeat the prompt are left out, and those that it holds before. A title that names
nothing, such as "Community", and a repeated finding count as missing. A report without a summary or finding of its own
is rejected. Keep out: prompts and calls (`model.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from graphrag_pipeline.citations import Cited, render_citation, replace_written, strip_citations
from graphrag_pipeline.indexing.reports.community_reports import Report
from graphrag_pipeline.indexing.reports.contexts import CommunityContext
from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.reply_json import clean_text, read_json
from graphrag_pipeline.text.cut_texts import drop_repeated_sentences
from graphrag_pipeline.text.extractive import sentences_of
from graphrag_pipeline.text.sentence_forms import find_words, fold

MAX_FINDINGS = 10
MAX_TITLE = 300  # characters
MAX_TEXT = 20_000
MIDDLE_RATING = 5.0
ECHO = "text of the prompt"
"""Problem: a value repeats the prompt."""
REPEATED = "repeated sentence or finding"

_GENERIC = frozenset({"overview", "summary", "analysis", "report", "community", "group", "network", "general", "title"})
_BLANKS = re.compile(r"[ \t]{2,}+")
_NUMBER = re.compile(r"[-+]?\d{1,9}(?:[.,]\d{1,6})?")
_RANGE = re.compile(r"\d\s*(?:to|\.\.+|[-\u2013\u2014])\s*\d")


# The docstrings of these two models are descriptions in the schema that is sent; request keys cover them.


class ReportFinding(BaseModel):
    """One finding of the schema that the model is asked for."""

    summary: str
    explanation: str


class ReportReply(BaseModel):
    """The schema that the model is asked for; what comes is read more leniently."""

    title: str
    summary: str
    rating: float
    rating_explanation: str
    findings: list[ReportFinding]


@dataclass(frozen=True)
class WrittenReport:
    """A report and, by reason, the number of parts of the reply left out or repaired."""

    report: Report
    problems: Mapping[str, int]


@dataclass(frozen=True)
class _FieldReader:
    """Reads the texts of a reply: cleans them, maps citations to stable ids, and leaves out echoes of the prompt."""

    ids: Mapping[str, Mapping[str, str]]
    echoes: PromptEchoes
    data: str
    problems: Counter[str]

    def read_cited(self, value: Any) -> str:
        return cite_ids(self.keep_own(_text(value)), self.ids, self.problems, self.echoes)

    def read_line(self, value: Any) -> str:
        return self.keep_own(_one_line(value))

    def keep_own(self, text: str) -> str:
        """Return a text without sentences that repeat the prompt or that it holds before, counted; "" for an echo."""
        own = "" if self.echoes.holds(text, self.data) else self.echoes.keep_own(text, self.data)
        self.problems[ECHO] += own != text
        once = drop_repeated_sentences(own)
        self.problems[REPEATED] += once != own
        return once

    def read_title(self, value: Any, central: Sequence[str]) -> str:
        """Return a title, or the names of the central entities if it has only words of the prompt or of any report."""
        title = self.read_line(value)
        names = {word for name in central for word in find_words(fold(name))}
        words = find_words(fold(title))
        own = " ".join(word for word in words if word not in _GENERIC)
        if words and names.isdisjoint(words) and (not own or self.echoes.has_all_words(own)):
            self.problems["title that names nothing"] += 1
            title = ""
        return title or ", ".join(central)


def parse_reply(reply: str, context: CommunityContext, echoes: PromptEchoes | None = None) -> WrittenReport:
    """Parse the report on a community.

    Args:
        echoes: of the prompt; None accepts any value.

    Raises:
        ReplyFormatError: the reply has no JSON object with a summary and a finding of the model's own.
    """
    fields = next(_find_reports(read_json(reply)), None)
    if fields is None:
        raise ReplyFormatError(
            f"no JSON object with summary and findings could be read; the reply starts {reply[:80]!r}"
        )
    problems: Counter[str] = Counter()
    ids = {kind: {str(n): record for record, n in numbers.items()} for kind, numbers in context.numbers.items()}
    reader = _FieldReader(ids, echoes or PromptEchoes(), context.text, problems)
    summary = reader.read_cited(fields.get("summary"))
    findings = tuple(_read_findings(fields.get("findings"), reader))
    if not summary or not findings:
        missing = "finding that can be read" if summary else "summary"
        copied = "; it repeats the text of the prompt: write about the data" if problems[ECHO] else ""
        raise ReplyFormatError(f"the report has no {missing}{copied}")
    n_copied = problems[ECHO]
    explanation = reader.keep_own(
        strip_citations(_text(fields.get("rating_explanation", fields.get("rank_explanation"))))
    )
    is_rated = problems[ECHO] == n_copied
    rating = _read_rating(fields.get("rating", fields.get("rank")) if is_rated else None, problems)
    title = reader.read_title(fields.get("title"), context.central)
    report = Report(title, summary, findings[:MAX_FINDINGS], rating, explanation)
    if len(findings) > MAX_FINDINGS:
        problems["findings over 10"] += len(findings) - MAX_FINDINGS
    return WrittenReport(report, dict(sorted((+problems).items())))


def _find_reports(values: list[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the objects with a summary and findings, outermost first."""
    level: list[Any] = values
    while level:
        for value in level:
            if isinstance(value, dict):
                fields = {str(key).strip().casefold(): item for key, item in value.items()}
                if fields.keys() >= {"summary", "findings"}:
                    yield fields
        inner = [value.values() if isinstance(value, dict) else value for value in level]
        level = [item for items in inner for item in items if isinstance(item, dict | list)]


def _read_findings(value: Any, reader: _FieldReader) -> Iterator[tuple[str, str]]:
    seen: set[tuple[str, str]] = set()
    items = list(value.values()) if isinstance(value, dict) and "explanation" not in value else value
    for item in items if isinstance(items, list) else [items]:
        fields = item if isinstance(item, dict) else {"explanation": item}
        heading = reader.read_line(fields.get("summary", fields.get("title")))
        explanation = reader.read_cited(fields.get("explanation", fields.get("description")))
        finding = heading or _first_sentence(explanation), explanation or heading
        if not heading and not explanation:
            reader.problems["finding without text"] += 1
        elif finding in seen:
            reader.problems[REPEATED] += 1
        else:
            seen.add(finding)
            yield finding


def cite_ids(
    text: str,
    ids: Mapping[str, Mapping[str, str]],
    problems: Counter[str],
    echoes: PromptEchoes | None = None,
) -> str:
    """Replace local numbers in the citations of a text by stable ids.

    Args:
        ids: kind -> number -> id.
        problems: counts unknown numbers, which are removed.
        echoes: of the prompt; the numbers of a citation copied from it count as unknown.
    """

    def replace(parts: Cited) -> str:
        cited: dict[str, dict[str, None]] = {}
        is_copied = echoes is not None and echoes.is_copied_citation(parts)
        for kind, numbers in parts:
            for number in numbers:
                if number in ids.get(kind, ()) and not is_copied:
                    cited.setdefault(kind, {})[ids[kind][number]] = None
                else:
                    problems["invented citation"] += 1
        return render_citation(cited.items())

    return replace_written(text, replace).strip()


def _read_rating(value: Any, problems: Counter[str]) -> float:
    """Read a rating from 0 to 10, such as 8.5, "8.5" or "8.5/10"; clip others, use `MIDDLE_RATING` for non-numbers.

    A range, such as the prompt's own "0 to 10", is not a number.
    """
    is_text = isinstance(value, str) and not _RANGE.search(value[:40])
    match = _NUMBER.search(value[:40]) if is_text else None
    number = float(match.group(0).replace(",", ".")) if match else value
    if isinstance(number, bool) or not isinstance(number, int | float) or number != number:
        problems["rating not a number"] += 1
        return MIDDLE_RATING
    if not 0 <= number <= 10:
        problems["rating out of range"] += 1
    return float(min(max(number, 0), 10))


def _text(value: Any) -> str:
    return _BLANKS.sub(" ", clean_text(value[:MAX_TEXT])) if isinstance(value, str) else ""


def _one_line(value: Any) -> str:
    return " ".join(strip_citations(_text(value)).split())[:MAX_TITLE].strip(" #*")


def _first_sentence(text: str) -> str:
    return _one_line((sentences_of(strip_citations(text)) or [""])[0])
