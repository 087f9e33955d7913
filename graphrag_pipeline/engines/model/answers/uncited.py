"""Sentences of a model's answer that cite nothing, matched to what the model was shown.

Support is by words (`support.py`), where the title of the record counts, too. A sentence with a citation behind it in
its line may rest on that one: it is only reported if it has a name or number that nothing shown has. Headings,
questions, and sentences about the data itself ("The sources do not say ...") are left out.

Keep out: the rule of support, the citation of a record (`model_citations.py`) and the words of notes (`notes.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from graphrag_pipeline.citations import parse_citations, strip_citations
from graphrag_pipeline.query.answers.support import (
    MIN_WORDS,
    SOURCES,
    StatedWords,
    read_windows,
    writes_names_with_capitals,
)
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.global_ import Point
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.sentences import split_sentences

_MARKER = late_re(r"\[\d+\]")
_BEHIND_STOP = late_re(r"([.!?\u2026\u3002\uff01\uff1f][\"'\u201d\u2019)]*)[ \t]*((?:\[\d+\])+)")
_DECORATION = late_re(r"^[\s>*+\-\u2022]*(?:\d{1,3}[.)]\s+)?|[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}")
_NO_STATEMENT = late_re(r"\s*+(?:#|\||-{3,})|(?:.*\w)?+[^\w:\uff1a?\uff1f]*+[:\uff1a?\uff1f]", re.DOTALL)
_ABOUT_DATA = late_re(
    rf"\b{SOURCES}\b.{{0,60}}\b(?:not|no|nothing|neither|open)\b|\bno (?:information|mention|record|evidence)\b|"
    r"\b(?:not|n't) (?:say|state|mention|specif|provid|answer|known|clear|stated|mentioned|specified|given)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ShownText:
    """A text that the model was shown, and the record that it may be cited by; `kind` as in a citation."""

    kind: str
    number: int
    title: str
    text: str

    @cached_property
    def windows(self) -> list[frozenset[str]]:
        """The words of each run of sentences that may support a statement, and of the title."""
        return read_windows(strip_citations(self.text), self.title)

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset().union(*self.windows)


@dataclass(frozen=True)
class CheckedSentence:
    """A sentence without a citation, and the text that supports it; None if nothing shown does."""

    text: str
    support: ShownText | None


def show_context(context: Context) -> list[ShownText]:
    """Return the texts of a context, those of documents first."""
    return [
        *(ShownText("Sources", unit.human_readable_id, unit.document_title, unit.text) for unit in context.text_units),
        *(ShownText("Claims", c.human_readable_id, f"{c.subject} {c.object}", c.description) for c in context.claims),
        *(
            ShownText("Relationships", pair.human_readable_id, f"{pair.source} {pair.target}", pair.description)
            for pair in context.relationships
        ),
        *(
            ShownText("Entities", entity.human_readable_id, entity.title, entity.description)
            for entity in context.entities
        ),
        *(ShownText("Reports", report.human_readable_id, report.title, report.content) for report in context.reports),
    ]


def show_points(points: Sequence[Point]) -> list[ShownText]:
    """Return the texts of points, each with the first record that it cites; a point without one is left out."""
    cited = [(point.explanation, parse_citations(point.explanation)) for point in points]
    first = [(text, found[0][0], found[0][1][0]) for text, found in cited if found]
    return [ShownText(kind, int(number), "", text) for text, kind, number in first if number.isdecimal()]


def check_sentences(answer: str, shown: Sequence[ShownText]) -> list[CheckedSentence]:
    """Return the sentences of an answer that cite nothing and need a source, with what supports them (see the module).

    Args:
        answer: with markers such as [1].
    """
    has_names = writes_names_with_capitals(answer)
    checked = []
    for sentence, is_covered in _uncited(answer):
        statement = StatedWords.read(sentence, has_names)
        if len(statement.words) < MIN_WORDS:
            continue
        support = next((text for text in shown if statement.is_supported_by(text.windows)), None)
        if support is None and is_covered and statement.musts <= frozenset().union(*(text.words for text in shown)):
            continue
        checked.append(CheckedSentence(sentence, support))
    return checked


def _uncited(answer: str) -> Iterator[tuple[str, bool]]:
    """Yield the sentences that state something without a marker, and whether a marker follows in their line."""
    for line in answer.splitlines():
        if _NO_STATEMENT.match(line):
            continue
        line = _BEHIND_STOP.sub(r"\2\1", line)
        sentences = [line[start:end] for start, end in split_sentences(line)] if line.strip() else []
        for place, sentence in enumerate(sentences):
            bare = _DECORATION.sub("", sentence).strip()
            if bare and not _MARKER.search(sentence) and not _NO_STATEMENT.match(bare) and not _ABOUT_DATA.search(bare):
                yield bare, any(_MARKER.search(later) for later in sentences[place + 1 :])
