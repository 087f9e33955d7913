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

UNTYPED = 0.7
"""Factor of a name without a type."""

_WORD = re.compile(r"\w+(?:[-'\u2019]\w+)*")
_OPENING = re.compile(r"(?:\A|\n)[^\w\n]*(\w)")
"""The first word of a sentence and of a line, which has a capital though it is no name: "Held in the Corn Exchange"."""
_NAME = re.compile(
    r"(?:(?:Mrs?|Miss|Dr|Sir|Lady|Lord)\.? )?[A-Z\u00c0-\u00de][\w-]*[a-z]\w*(?:\.(?= [A-Z]))?"
    r"(?:\s+(?:(?:de|von|van|of|bin|al|la|le|du)\s+)?[A-Z\u00c0-\u00de][\w-]*\.?(?=\W))*"
)
_NUMBER = (
    r"(?:\d[\d,.]*|(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|(?:twen|thir|for|fif|six"
    r"|seven|eigh|nine)ty(?:-\w+)?|an?\s+(?:hundred|thousand|dozen|score)|hundreds?|thousands?|millions?|dozen|half)\b)"
)
_MONTH = rf"(?:{MONTH_NAMES})"
_UNIT = r"(?:years?|months?|weeks?|days?|hours?|minutes?|centur(?:y|ies)|decades?)"
_MONEY = r"(?:shillings?|pounds?|pence|pennies|dollars?|cents?|euros?|crowns?|guineas?|francs?|per\s?cent|%)"
_NUMBERS = {
    "date": re.compile(
        rf"(?:\d{{1,2}}\s+)?{_MONTH}\s+(?:\d{{1,2}},?\s+)?\d{{4}}|{_MONTH}\s+\d{{1,2}}\b|\b1\d{{3}}\b|\b20\d\d\b"
        rf"|{_NUMBER}\s+{_UNIT}\s+ago|\b[A-Z]\w+\s+(?:Eve|Day)\b"
    ),
    "duration": re.compile(rf"{_NUMBER}(?:[\s-]+{_NUMBER})*[\s-]+{_UNIT}\b", re.IGNORECASE),
    "amount": re.compile(rf"[$\u00a3\u20ac]\s?\d[\d,.]*|\b{_NUMBER}(?:[\s-]+{_NUMBER})*\s+{_MONEY}", re.IGNORECASE),
    "count": re.compile(rf"\b{_NUMBER}(?:[\s-]+{_NUMBER})*", re.IGNORECASE),
}
_TYPES = {"person": ("PERSON",), "place": ("GEO",)}
_LOCATES = re.compile(r"\b(?:in|at|on|to|near|from|of|into|towards)\s+(?:the\s+)?\Z", re.IGNORECASE)
_CALENDAR = re.compile(rf"{_MONTH}|\w+day")


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
        named = set(index.names.find(analysis.question))
        self._has_named = bool(named)
        rows = index.snapshot.rows_of("text_units", sorted({unit.id for unit in units}))
        taken = index.snapshot.take("text_units", rows, ["entity_ids"])
        ids = sorted({entity for unit in taken for entity in unit["entity_ids"] or ()})
        known = [row for row in index.snapshot.rows_of("entities", ids).tolist() if row >= 0]
        for row, entity in zip(known, index.snapshot.take("entities", known, ["title", "type", "names"]), strict=True):
            self._add(entity, row in named)

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
        for found in _NAME.finditer(text):
            yield from self._read(text, found, found.start() in openings)

    def _numbers(self, text: str) -> Iterator[Mention]:
        for found in _NUMBERS[self._asked.kind].finditer(text):
            name = " ".join(found[0].split()).lower().strip(",. ")
            behind = _WORD.findall(text[found.end() :])[:2]
            if self._asked.kind != "count":
                self._display[name] = " ".join(found[0].split()).strip(",. ")
                yield Mention(name, found.start(), found.end(), 1.0)
            elif self._asked.focus & {stem(word.lower()) for word in behind}:
                yield Mention(name, found.start(), found.end(), 1.0)

    def _read(self, text: str, found: re.Match[str], is_opening: bool) -> Iterator[Mention]:
        name = " ".join(found[0].split()).rstrip(".")
        title, kind = self._of_form.get(name, (name, ""))
        if kind in ("NAMED", "OTHER") or self._is_anchor(content_words(name)):
            return
        if not kind and ((is_opening and " " not in name) or _CALENDAR.fullmatch(name)):
            return
        is_agent = kind == "ORGANIZATION" and self._asked.kind == "person" and self._asked.verb is not None
        if is_agent or kind in _TYPES[self._asked.kind]:
            yield Mention(title, found.start(), found.end(), 1.0)
        elif kind in ("", "UNKNOWN"):
            locates = bool(_LOCATES.search(text[: found.start()]))
            if (self._asked.kind == "place") == locates or self._asked.kind == "person":
                yield Mention(title, found.start(), found.end(), UNTYPED)

    def _is_anchor(self, words: frozenset[str]) -> bool:
        """Return whether a name is what the question starts from, or may be its full form."""
        anchors = self._asked.anchors
        return words <= anchors or (not self._has_named and bool(anchors) and anchors <= words)
