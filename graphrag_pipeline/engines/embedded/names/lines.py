"""Lines that end on purpose: headings and labels that are followed by text without a blank line between them.

`text/sentences.py` leaves such a heading in the sentence after it, because the ends of sentences decide the text units.
Extraction splits them, so that "Diagnosis", newline, "Offer a biopsy" is not the name "Diagnosis Offer".

Keep out: whether a name is a heading (`capitals.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from graphrag_pipeline.text.late_patterns import late_regex

MIN_WIDTH = 40
"""Least width in characters that a text may be wrapped at; shorter lines all end on purpose."""
MAX_LABEL = 100
"""Characters of the longest line that is split off."""

_ITEM = late_regex(r"[ \t]*(?:[a-z]\.|\([a-z]\)|[-*•])[ \t]+\p{Lu}")
_NEXT_WORD = late_regex(r"[ \t]*+[\"'“‘(\[]?+(\p{Lu}\S*+|\d\S*+)")


def split_lines(text: str, sentences: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Split sentences after lines that end on purpose; the spans returned cover the same text, in order.

    A line ends on purpose if a sentence starts with the whole line, the next line begins with a capital or a number,
    and its first word would have fitted into the line; and if the next line is an item of a list.

    Args:
        sentences: spans as `split_sentences` returns them.
    """
    spans = list(sentences)
    width = _width_of(text)
    return [part for start, end in spans for part in _split(text, start, end, width)]


def _width_of(text: str) -> int:
    """Return the width in characters that most of the text is wrapped at: nine of ten lines of text are shorter."""
    lengths = sorted(len(line) for line in text.split("\n") if " " in line)
    return max(lengths[len(lengths) * 9 // 10] if lengths else 0, MIN_WIDTH)


def _split(text: str, start: int, end: int, width: int) -> Iterator[tuple[int, int]]:
    place = text.find("\n", start, end)
    while 0 <= place < end - 1:
        if _ends_on_purpose(text, start, place, width) or _ITEM.match(text, place + 1):
            yield start, place + 1
            start = place + 1
        place = text.find("\n", place + 1, end)
    yield start, end


def _ends_on_purpose(text: str, start: int, end: int, width: int) -> bool:
    line = text[start:end]
    label = line.strip()
    if not label or "\n" in label or len(label) > MAX_LABEL or label[-1] in ",;-—–‐&/" or text[start - 1 : start] > " ":
        return False
    following = _NEXT_WORD.match(text, end + 1)
    indent = start - (text.rfind("\n", 0, start) + 1)
    return following is not None and indent + len(line) + 1 + len(following.group(1)) <= width
