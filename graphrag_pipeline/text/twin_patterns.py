"""Patterns with Unicode classes, each in two forms: for any text, and for texts of ASCII alone.

Classes such as `p{L}` need the package `regex`. In a text of ASCII, `re` finds the same with plain ranges of letters,
in a third to a half of the time. Most words around names are of ASCII also in texts that are not. Each form is compiled
when a text first needs it. Keep out: patterns with look-behinds of several lengths, which `re` refuses.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cached_property
from typing import cast

import regex

_RANGES = {"L": "A-Za-z", "Lu": "A-Z", "Ll": "a-z", "Nd": "0-9", "M": ""}
"""Name of a Unicode class -> its characters in ASCII."""
_PIECE = re.compile(r"\\p\{(?P<named>\w+)\}|\\.|.", re.DOTALL)


class TwinPattern:
    """A pattern that is searched by `re` in texts of ASCII, and by `regex` in others.

    Args:
        pattern: for `regex`; classes of `_RANGES` are all that `re` cannot read in it.
        flags: `regex.MULTILINE` or `regex.VERBOSE`, whose numbers are those of `re`.
    """

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._pattern = pattern
        self._flags = flags

    def search(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """Return the first match in a part of a text."""
        return (self._in_ascii if text.isascii() else self._in_any).search(text, start, end)

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        """Return the match at an offset."""
        return (self._in_ascii if text.isascii() else self._in_any).match(text, start)

    def findall(self, text: str) -> list[str]:
        """Return the matches, or their only group."""
        return (self._in_ascii if text.isascii() else self._in_any).findall(text)

    @cached_property
    def _in_any(self) -> re.Pattern[str]:
        return cast("re.Pattern[str]", regex.compile(self._pattern, self._flags))

    @cached_property
    def _in_ascii(self) -> re.Pattern[str]:
        return re.compile("".join(_plain_ranges(self._pattern)), self._flags | re.ASCII)


def _plain_ranges(pattern: str) -> Iterator[str]:
    is_in_brackets = False
    for piece in _PIECE.finditer(pattern):
        if piece["named"]:
            characters = _RANGES[piece["named"]]
            yield characters if is_in_brackets else f"[{characters}]"
            continue
        yield piece.group()
        if piece.group() == ("]" if is_in_brackets else "["):
            is_in_brackets = not is_in_brackets
