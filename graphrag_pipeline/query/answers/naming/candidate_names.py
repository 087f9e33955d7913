"""Candidates for the name or number that a question asks for, as they are written in sentences.

Candidates for a person or a place are names of entities of that type, and other words with capitals. The other
candidates are numbers with what they count. Keep out: scores of sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words, stem
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.selection.passages import Sentence
from graphrag_pipeline.query.understanding.asked_name import AskedName
from graphrag_pipeline.query.understanding.question_analysis import QuestionAnalysis
from graphrag_pipeline.query.understanding.time_forms import MONTH_NAMES
from graphrag_pipeline.text.currencies import CURRENCIES
from graphrag_pipeline.text.late_patterns import late_re

UNTYPED = 0.7
"""Factor of a name without a type."""

_WORD = late_re(r"\w+(?:[-'\u2019]\w+)*")
_OPENING = late_re(r"(?:\A|\n)[^\w\n]*(\w)")
"""The first word of a sentence and of a line, which has a capital though it is no name: "Held in the Corn Exchange"."""
_NAME = late_re(
    r"(?:(?:Mrs?|Miss|Dr|Sir|Lady|Lord)\.? )?[A-Z\u00c0-\u00de][\w-]*[a-z]\w*(?:\.(?= [A-Z]))?"
    r"(?:\s+(?:(?:de|von|van|of|bin|al|la|le|du)\s+)?[A-Z\u00c0-\u00de][\w-]*\.?(?=\W))*"
)
_PLURAL = late_re(r"s['\u2019]\s+[A-Z]")
"""A possessive inside a name: "Beekeepers' Association"."""
_NUMBER = (
    r"(?:\d[\d,.]*|(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|(?:twen|thir|for|fif|six"
    r"|seven|eigh|nine)ty(?:-\w+)?|an?\s+(?:hundred|thousand|dozen|score)|hundreds?|thousands?|millions?|dozen|half)\b)"
)
_MONTH = rf"(?:{MONTH_NAMES})"
_UNIT = r"(?:years?|months?|weeks?|days?|hours?|minutes?|centur(?:y|ies)|decades?)"
_MONEY = rf"(?:{CURRENCIES}|per\s?cent|%)"
_SUM = rf"(?:[$\u00a3\u20ac]\s?\d[\d,.]*|\b{_NUMBER}(?:[\s-]+{_NUMBER})*\s+{_MONEY})"
_RATE = r"\s+(?:an?|per|each|every)\s+(?:hour|day|week|fortnight|month|quarter|year|annum)\b"
WAGE = late_re(rf"{_SUM}{_RATE}", re.IGNORECASE)
"""A sum of money for a time, such as "fifteen shillings a week"."""
_NUMBERS = {
    "date": late_re(
        rf"(?:\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?)?{_MONTH},?\s+(?:\d{{1,2}}(?:st|nd|rd|th)?,?\s+)?\d{{4}}"
        rf"|\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}\b|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?\b|\b1\d{{3}}\b|\b20\d\d\b"
        rf"|{_NUMBER}\s+{_UNIT}\s+ago|\b[A-Z]\w+\s+(?:Eve|Day)\b"
    ),
    "duration": late_re(rf"{_NUMBER}(?:[\s-]+{_NUMBER})*[\s-]+{_UNIT}\b(?!['\u2019]?-)", re.IGNORECASE),
    "amount": late_re(rf"{_SUM}(?:{_RATE})?", re.IGNORECASE),
    "count": late_re(rf"\b{_NUMBER}(?:[\s-]+{_NUMBER})*(?:\s?%|\s+per\s?cent\b)?", re.IGNORECASE),
}
_ATTRIBUTE = late_re(r"-\w+['\u2019]?-")
"""What follows a number that is part of an adjective: "his seven-years'-dead partner"."""
_VOTES = rf"(?:{_NUMBER})(?:\s+votes?)?"
_AGAINST = late_re(
    rf"\b(?:carried|passed|approved|adopted|agreed|accepted)\b[^.;]*?\bby\s+{_VOTES}\s+to\s+(?P<to>{_NUMBER})"
    rf"|\b(?:rejected|defeated|lost|refused)\b[^.;]*?\bby\s+(?P<by>{_NUMBER})(?:\s+votes?)?\s+to\s"
    rf"|\b(?P<beside>{_NUMBER})(?:\s+(?:votes?|voted|members?|were)){{0,2}}\s+against\b",
    re.IGNORECASE,
)
"""How a text gives the number of those against: "carried by 33 votes to 6", "six voted against"."""
_IS_AGAINST = late_re(r"\bagainst\b", re.IGNORECASE)
_SECOND_OF = late_re(r"(?P<person>\S+\s+\S.*?)\s+of\s")
_SEAT = late_re(r"(?P<owner>[A-Z\u00c0-\u00de][\w-]*) in \Z")
_TYPES = {"person": ("PERSON",), "place": ("GEO",)}
_LOCATES = late_re(r"\b(?:in|at|on|to|near|from|of|into|towards)\s+(?:the\s+)?\Z", re.IGNORECASE)
_CALENDAR = late_re(rf"{_MONTH}|\w+day")


@dataclass(frozen=True)
class Mention:
    """A candidate in a sentence: `sentence.text[start:end]`; `weight` is less for a name without a type."""

    key: str
    start: int
    end: int
    weight: float


class CandidateNames:
    """The names of a kind in sentences: entities of the text units, and other words with capitals."""

    def __init__(
        self, index: IndexReader, analysis: QuestionAnalysis, asked: AskedName, units: Sequence[TextUnitRecord]
    ) -> None:
        self._asked = asked
        self._of_form: dict[str, tuple[str, str]] = {}
        self._display: dict[str, str] = {}
        self._counts_against = asked.kind == "count" and bool(_IS_AGAINST.search(analysis.question))
        named = set(index.names.find(analysis.question))
        self._has_named = bool(named)
        rows = index.snapshot.rows_of("text_units", sorted({unit.id for unit in units}))
        taken = index.snapshot.take("text_units", rows, ["entity_ids"])
        ids = sorted({entity for unit in taken for entity in unit["entity_ids"] or ()})
        known = [row for row in index.snapshot.rows_of("entities", ids).tolist() if row >= 0]
        for row, entity in zip(known, index.snapshot.take("entities", known, ["title", "type", "names"]), strict=True):
            self._add(entity, row in named)
        plurals = [re.escape(form) for form in sorted(self._of_form, key=len, reverse=True) if _PLURAL.search(form)]
        self._pattern = re.compile(rf"(?:The\s+)?(?:{'|'.join(plurals)})\b|{_NAME.pattern}") if plurals else _NAME

    def _add(self, entity: Mapping[str, Any], is_named: bool) -> None:
        forms = sorted(set(entity["names"] or ()) or {entity["title"]}, key=lambda form: (-len(form), form))
        is_common = any(form.islower() or form.startswith("the ") for form in forms)
        kind = "NAMED" if is_named else "OTHER" if is_common or "'S " in entity["title"] else entity["type"]
        for form in forms:
            self._of_form.setdefault(form, (entity["title"], kind))
        spelled = [form for form in forms if form.upper() == entity["title"]]
        self._display[entity["title"]] = next((f for f in spelled if f != f.upper()), forms[0])

    def display(self, key: str) -> str:
        """Return a name as the texts write it."""
        return self._display.get(key, key)

    def find(self, sentence: Sentence) -> Iterator[Mention]:
        """Yield the candidates in a sentence."""
        text = sentence.text
        if self._asked.kind in _NUMBERS:
            yield from self._numbers(text)
            return
        openings = {found.start(1) for found in _OPENING.finditer(text)}
        for found in self._pattern.finditer(text):
            yield from self._read(text, found, found.start() in openings)

    def _numbers(self, text: str) -> Iterator[Mention]:
        if self._counts_against:
            for found in _AGAINST.finditer(text):
                group = found.lastgroup or ""
                yield Mention(found[group].lower().strip(",. "), found.start(group), found.end(group), 1.0)
            return
        for found in _NUMBERS[self._asked.kind].finditer(text):
            if _ATTRIBUTE.match(text, found.end()):
                continue
            name = " ".join(found[0].split()).lower().strip(",. ")
            behind = _WORD.findall(text[found.end() :])[:2]
            if self._asked.kind != "count":
                self._display[name] = " ".join(found[0].split()).strip(",. ")
                yield Mention(name, found.start(), found.end(), 1.0)
            elif self._asked.focus & {stem(word.lower()) for word in behind}:
                yield Mention(name, found.start(), found.end(), 1.0)

    def _read(self, text: str, found: re.Match[str], is_opening: bool) -> Iterator[Mention]:
        name = " ".join(found[0].split()).rstrip(".")
        if name.removeprefix("The ") in self._of_form:
            name = name.removeprefix("The ")
        if self._asked.kind == "person" and (firm := _SECOND_OF.match(name)):  # "Ida Kern of Kern and Roth"
            name = firm["person"]
        if (seat := _SEAT.search(text[: found.start()])) and self._of_form.get(seat["owner"], "")[1:] == (
            "ORGANIZATION",
        ):
            return
        title, kind = self._of_form.get(name, (name, ""))
        if kind in ("NAMED", "OTHER") or self._is_anchor(content_words(name)):
            return
        if not kind and ((is_opening and " " not in name) or _CALENDAR.fullmatch(name)):
            return
        is_agent = kind == "ORGANIZATION" and self._asked.kind == "person" and self._asked.verb is not None
        is_of_type = kind in _TYPES[self._asked.kind] and not self._asked.is_body
        if is_agent or is_of_type:
            yield Mention(title, found.start(), found.end(), 1.0)
        elif self._asked.is_body:
            return
        elif kind in ("", "UNKNOWN"):
            locates = bool(_LOCATES.search(text[: found.start()]))
            if (self._asked.kind == "place") == locates or self._asked.kind == "person":
                yield Mention(title, found.start(), found.end(), UNTYPED)

    def _is_anchor(self, words: frozenset[str]) -> bool:
        """Return whether a name is what the question starts from, or may be its full form."""
        anchors = self._asked.anchors
        return words <= anchors or (not self._has_named and bool(anchors) and anchors <= words)
