"""Widths of text in a terminal: cells of characters, wrapping, and cutting. Keep out: printing."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator

MAX_WIDTH = 120
"""Columns of running text in a wider terminal."""
MIN_WIDTH = 40


def text_width() -> int:
    """Return the columns of running text; 0 if output does not go to a terminal: then lines are not wrapped."""
    if not sys.stdout.isatty():
        return 0
    return max(MIN_WIDTH, min(MAX_WIDTH, shutil.get_terminal_size().columns))


def cells(text: str) -> int:
    """Return the columns that a text takes; Chinese and Japanese characters take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrap(text: str, width: int, indent: str = "") -> Iterator[str]:
    """Yield the lines of a text; each line of the text begins a new one.

    Args:
        width: maximum of cells in a line with its indent; 0 does not wrap.
    """
    for line in text.splitlines() or [""]:
        for part in _wrap_line(line, width - len(indent)) if width else [line]:
            yield f"{indent}{part}".rstrip()


def _wrap_line(line: str, width: int) -> Iterator[str]:
    if cells(line) <= width:
        yield line
        return
    begun = ""
    for word in line.split():
        joined = f"{begun} {word}" if begun else word
        if cells(joined) <= width:
            begun = joined
            continue
        if begun:
            yield begun
        *whole, begun = _chop(word, width)
        yield from whole
    yield begun


def _chop(word: str, width: int) -> list[str]:
    """Return the pieces of a word that is too long for a line."""
    if cells(word) <= width:
        return [word]
    from rich.cells import chop_cells

    return chop_cells(word, width)
