"""Texts that a limit cut off, or must cut: what of them is whole, and said once.

Small models often fall into a loop: they write the same sentence until the most tokens of a reply are reached.
Keep out: JSON and records (`models/reply_json.py`, `engines/model/extraction/reply_records.py`).
"""

from __future__ import annotations

import re

from graphrag_pipeline.text.sentences import grapheme_start, split_sentences
from graphrag_pipeline.text.tokens import count_tokens_each

_SENTENCE_END = re.compile(r"[.!?\u3002\uff01\uff1f\u2026][\"'\u201d\u2019)\]]*(?=\s|\Z)|[\u3002\uff01\uff1f]")
CUT_NOTE = "\n\n(The reply is cut off here: it reached the most tokens of a reply.)"
LOOP_NOTE = "\n\n(The reply is cut off here: it repeated itself.)"
LOOP_TAIL = 40
"""Characters at the end of a text that a loop has written before."""
LOOP_TIMES = 3
"""Occurrences of these characters from which a text is a loop."""

CERTAIN_PART, CERTAIN_TIMES, CERTAIN_LENGTH = 12, 6, 240
"""A text is in a loop for certain if it ends with so many copies of one part, of at least so many letters or digits,
that take at least so many characters together."""
CERTAIN_MARKS = 1_200
"""Characters that copies of a shorter part must take: rules of tables and lines of dashes are no loops."""
LOOKED_AT = 12_000
"""Characters at the end of a text in which copies are looked for."""
_PROBE = 24
_MOST_PARTS = 8


SAFE_SHARE = 0.95
"""Share of the characters that are kept when tokens are cut: places of tokens are guessed from places of characters."""


def cut_tokens(text: str, n_tokens: int) -> str:
    """Return the start of a text, at least `n_tokens` tokens shorter; "" if it has no more."""
    size = count_tokens_each([text])[0]
    limit = size - n_tokens
    while text and size > limit:
        text = text[: grapheme_start(text, int(len(text) * SAFE_SHARE * max(0, limit) / size))]
        size = count_tokens_each([text])[0]
    return text


def cut_note(text: str) -> str:
    """Return what is shown below a reply that was cut off: that it was, and why."""
    return LOOP_NOTE if is_loop(text) else CUT_NOTE


def drop_cut_note(text: str) -> str:
    """Return a reply as the model wrote it, without the note of `cut_note`."""
    return text.replace(CUT_NOTE, "").replace(LOOP_NOTE, "")


def is_loop(text: str) -> bool:
    """Return whether a text that was cut off ended in a loop: its last characters occur at least three times."""
    tail = text.rstrip()[-LOOP_TAIL:]
    return len(tail) == LOOP_TAIL and text.count(tail) >= LOOP_TIMES


def ends_in_certain_loop(text: str) -> bool:
    """Return whether a text that is still being written repeats one part, character by character, and nothing else.

    A list whose numbers count on is no certain loop, since each of its items differs.
    """
    end = text[-LOOKED_AT:]
    probe, place = end[-_PROBE:], max(len(end) - _PROBE, 0)
    for _ in range(_MOST_PARTS):
        place = end.rfind(probe, 0, place + _PROBE - 1)
        if place < 0:
            return False
        if _repeats(end, len(end) - _PROBE - place):
            return True
    return False


def _repeats(text: str, size: int) -> bool:
    """Return whether a text ends with enough copies of its last `size` characters."""
    is_long = sum(map(str.isalnum, text[-size:])) >= CERTAIN_PART
    length = max(CERTAIN_TIMES * size, CERTAIN_LENGTH if is_long else CERTAIN_MARKS)
    return length <= len(text) and text[-length + size :] == text[-length:-size]


def keep_whole_sentences(text: str) -> str:
    """Return a text that was cut off up to the end of its last whole sentence, each sentence once; "" without one."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    return drop_repeated_sentences(text[: ends[-1]]) if ends else ""


def drop_repeated_sentences(text: str) -> str:
    """Return a text that was cut off without sentences that it holds before, and without the start of one at its end.

    Upper and lower case and white space do not count. A text without a repeated sentence is unchanged.
    """
    spans = split_sentences(text)
    seen: dict[str, None] = {}
    kept: list[str] = []
    for number, (start, end) in enumerate(spans, 1):
        words = " ".join(text[start:end].split()).casefold()
        is_last = number == len(spans)
        if words in seen or (is_last and words and any(sentence.startswith(words) for sentence in seen)):
            continue
        seen[words] = None
        kept.append(text[start:end])
    return text if len(kept) == len(spans) else "".join(kept).rstrip()
