"""Markers of an answer as markdown footnotes: `[1]` becomes `[^1]`, and each source is a line `[^1]: ...` at the end.

Keep out: choosing what is cited.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from graphrag_pipeline.query.rendering import MAX_QUOTE_SHOWN
from graphrag_pipeline.query.results import Citation

_MARKER = re.compile(r"\[(\d{1,3})\](?!\()")
_REFERENCE = re.compile(r"\[\^(\d{1,3})\]")
_BEGUN = re.compile(r"\[\d{0,3}\]?\Z")
_FOOTNOTES = re.compile(r"^\[\^\d{1,3}\]: .*$\n?", re.MULTILINE)


class FootnoteStream:
    """Rewriter of an answer that comes in pieces; the end of a piece that may begin a marker waits for the next."""

    def __init__(self) -> None:
        self._waiting = ""

    def take(self, piece: str) -> str:
        """Return the text that is complete."""
        text = self._waiting + piece
        begun = _BEGUN.search(text)
        cut = begun.start() if begun else len(text)
        self._waiting = text[cut:]
        return refer(text[:cut])

    def finish(self) -> str:
        """Return the text that still waits."""
        text, self._waiting = self._waiting, ""
        return refer(text)


def refer(text: str) -> str:
    """Return a text with references to footnotes instead of markers."""
    return _MARKER.sub(r"[^\1]", text)


def write_footnotes(citations: Sequence[Citation]) -> str:
    """Return the footnotes of an answer, with two line ends before them; "" without citations."""
    lines = [f"[^{citation.number}]: {_describe(citation)}" for citation in citations]
    return "\n\n" + "\n".join(lines) if lines else ""


def _describe(citation: Citation) -> str:
    place = "" if citation.start is None else f", characters {citation.start:,}-{citation.end:,}"
    quote = " ".join(citation.quote.split())
    shown = quote if len(quote) <= MAX_QUOTE_SHOWN else f"{quote[:MAX_QUOTE_SHOWN].rsplit(' ', 1)[0]} ..."
    return f"{' '.join(citation.document_title.split())}{place}: \u201c{shown}\u201d"


def find_references(text: str) -> list[tuple[int, int, int]]:
    """Return (number, start, end) of each reference of a text, without its footnotes."""
    body = _FOOTNOTES.split(text)[0]
    return [(int(match[1]), match.start(), match.end()) for match in _REFERENCE.finditer(body)]


def drop_footnotes(text: str) -> str:
    """Return an earlier answer without footnotes and references, as history."""
    return _REFERENCE.sub("", _FOOTNOTES.sub("", text)).strip()
