"""Passages that are too long for the window of a model: they are read in halves, cut between sentences.

Keep out: prompts and replies (`model.py`), and the windows of models (`models/endpoints/windows.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from graphrag_pipeline.models.ports import CallFailedError
from graphrag_pipeline.text.sentences import grapheme_start, split_sentences

T = TypeVar("T")

MAX_HALVED = 3
"""How often a passage is halved: into eight parts at most."""


async def read_in_parts(
    text: str, read: Callable[[str], Awaitable[list[T]]], n_left: int = MAX_HALVED
) -> tuple[list[T], int]:
    """Return what `read` returns of a text, or of its parts in order if the window does not hold it, and their number.

    Raises:
        CallFailedError: of `read`, for another reason, or of a part that is still too long.
    """
    try:
        return await read(text), 1
    except CallFailedError as error:
        halves = halve(text)
        if not error.n_excess or not n_left or not all(map(str.strip, halves)):
            raise
    first, n_first = await read_in_parts(halves[0], read, n_left - 1)
    second, n_second = await read_in_parts(halves[1], read, n_left - 1)
    return first + second, n_first + n_second


def halve(text: str) -> tuple[str, str]:
    """Cut a text at the end of a sentence that is nearest to its middle; a text of one sentence at its middle."""
    middle = len(text) // 2
    starts = [start for start, _ in split_sentences(text)][1:] or [grapheme_start(text, middle)]
    place = min(starts, key=lambda start: abs(start - middle))
    return text[:place], text[place:]
