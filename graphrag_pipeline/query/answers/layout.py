"""Layout of extractive answers: an introduction, then passages under their titles, numbered, with matched words marked.

Keep out: the choice of passages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from graphrag_pipeline.query.answers.evidence import cite
from graphrag_pipeline.query.cited_records import CitedRecord
from graphrag_pipeline.query.question import stem, topic_words
from graphrag_pipeline.query.results import Answer, Citation
from graphrag_pipeline.query.selection.answer_passages import AnswerPassage
from graphrag_pipeline.text.sentence_forms import fold

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")


def compose(question: str, introduction: str, passages: Sequence[AnswerPassage]) -> Answer:
    """Return one line per passage under its title, numbered in that order."""
    lines, title = [introduction], None
    asked = topic_words(question)
    for number, passage in enumerate(passages, start=1):
        if passage.title != title:
            title = passage.title
            lines += ["", f"**{title}**", ""]
        lines.append(f"- {mark_words(passage.text, asked)} [{number}]")
    return Answer("\n".join(lines), tuple(_cite(number, passage) for number, passage in enumerate(passages, start=1)))


def mark_words(text: str, asked: frozenset[str]) -> str:
    """Return a text with the words of some stems in bold: "The **owner** is Ana"."""
    return _WORD.sub(lambda found: f"**{found[0]}**" if stem(fold(found[0])) in asked else found[0], text)


def _cite(number: int, passage: AnswerPassage) -> Citation:
    unit = passage.unit
    record = CitedRecord("text_unit", unit.id, unit.human_readable_id, ())
    return cite(number, unit, passage.start, passage.end, record)
