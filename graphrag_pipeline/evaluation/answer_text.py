"""The part of an answer that is compared with a reference answer, and answers that decline.

Markers such as [1], markdown, the opening line of the embedded engine and its document headings are not compared. An
answer declines if it begins with the words of this package, of Microsoft GraphRAG, or with a common English phrase for
it. Keep out: figures.
"""

from __future__ import annotations

import re

from graphrag_pipeline.query.answers.model import UNCITED

_MARKER = re.compile(r"\s?\[\d+\]")
_MARKDOWN = re.compile(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}|^#+\s+|^\s*[-*+]\s+", re.MULTILINE)
_QUOTED_LINE = re.compile(r"^- (.*)$", re.MULTILINE)
_REPLACED = re.compile(r"\AThe model gave no answer \(.*?\); the embedded engine answers instead\.\s*", re.DOTALL)
_DECLINES = re.compile(
    r"\W*(?:not in the index|nothing in the index|not answered:|unanswerable|"
    r"(?:i am|i'm) (?:very )?sorry,? but i (?:am unable|cannot|can't|do not|don't)|"
    r"i (?:do not|don't) know|i (?:am unable|am not able|cannot|can't) (?:to )?answer|"
    r"(?:the (?:data|sources|documents|context|text|provided \w+) )(?:does|do) not (?:say|answer|contain|mention))",
    re.IGNORECASE,
)


def declines(answer: str) -> bool:
    """Whether an answer begins by saying that it has none."""
    return _DECLINES.match(_REPLACED.sub("", answer).replace("\u2019", "'")) is not None


def answer_body(answer: str, engine: str) -> str:
    """Return what an answer states, as plain text: of the embedded engine, its quoted lines."""
    is_embedded = engine == "embedded" or _REPLACED.match(answer) is not None
    quoted = _QUOTED_LINE.findall(answer) if is_embedded else []
    text = "\n".join(quoted) if quoted else _REPLACED.sub("", answer).replace(UNCITED, "")
    return _MARKDOWN.sub("", _MARKER.sub("", text)).strip()
