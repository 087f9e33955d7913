"""A document as names are searched in it: one line a sentence, white space folded, places known in the original.

A name that a line break cuts ("Ebenezer" at the end of a line, "Scrooge" at the start of the next) is one run of words
here. Code, addresses and markup are masked before (`prose.mask_code`), so no name is found in them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_pipeline.text.late_patterns import late_regex

_RUN = late_regex(r"\S+")


@dataclass(frozen=True, slots=True)
class Name:
    """One occurrence of a name in a document.

    Attributes:
        form: the name as written, with white space and line breaks folded and without the possessive.
        start, end: character offsets of the name in the document's text.
        sentence: number of the sentence it is in.
    """

    form: str
    start: int
    end: int
    sentence: int


class FoldedText:
    """The sentences of a document, each on a line of `text` with single blanks.

    Args:
        original: the text of the document.
        spans: start and end of each sentence, in order.

    Attributes:
        text: the sentences, separated by line breaks.
        prose: the same, with blanks between sentences of one paragraph, as spaCy reads texts best.
        spans: start and end of each sentence in `text`; an empty span for one without text.
    """

    def __init__(self, original: str, spans: Sequence[tuple[int, int]]) -> None:
        self._starts: list[int] = []  # of each run of characters without white space, in `text`
        self._places: list[int] = []  # the same in the original
        self.spans: list[tuple[int, int]] = []
        parts: list[str] = []
        length = 0
        inside: list[int] = []  # the parts that end sentences inside a paragraph
        for start, end in spans:
            first = length
            for run in _RUN.finditer(original, start, end):
                self._starts.append(length)
                self._places.append(run.start())
                parts.append(run.group())
                parts.append(" ")
                length += run.end() - run.start() + 1
            if length > first:
                parts[-1] = "\n"
                if "\n" not in original[self._places[-1] : end]:
                    inside.append(len(parts) - 1)
            self.spans.append((first, max(length - 1, first)))
        self.text = "".join(parts)
        for part in inside:
            parts[part] = " "
        self.prose = "".join(parts)
        self._sentence_starts = [start for start, _ in self.spans]

    def place_of(self, start: int, end: int) -> tuple[int, int]:
        """Return the offsets in the original of a part of `text` that starts and ends with a visible character."""
        first, last = (bisect_right(self._starts, place) - 1 for place in (start, end - 1))
        return (
            self._places[first] + start - self._starts[first],
            self._places[last] + end - self._starts[last],
        )

    def sentence_of(self, start: int) -> int:
        """Return the number of the sentence that has a place of `text`."""
        return bisect_right(self._sentence_starts, start) - 1

    def is_first(self, start: int) -> bool:
        """Whether only marks (a quote, a bullet) stand before a place in its sentence."""
        first, _ = self.spans[self.sentence_of(start)]
        return not any(letter.isalnum() for letter in self.text[first:start])

    def name_at(self, form: str, start: int, end: int) -> Name:
        """Return the occurrence of a form in a part of `text`."""
        return Name(form, *self.place_of(start, end), self.sentence_of(start))
