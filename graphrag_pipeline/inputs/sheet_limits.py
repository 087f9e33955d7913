"""Limits of what openpyxl reads of an xlsx file: the cells that its sheets span, not only those that they hold.

A sheet becomes a table without gaps. So two cells in opposite corners take as much as all the cells between them. Keep
out: the size of the file after unzipping and the number of sheets (`conversion.py`), limits of time and memory
(`reading_process.py`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from graphrag_pipeline.inputs.formats import DamagedInput, RefusedError

_MIN_SPANNED = 1_000_000
"""Sheets that span fewer cells are read however few of them have content."""
_LAST_ROW = 1_048_576
"""Rows behind it are in no program's sheet."""


@contextmanager
def limited_sheets(max_ratio: int) -> Iterator[None]:
    """Let openpyxl read only files whose sheets span at most `max_ratio` times the cells that they hold.

    A date that Python has no value for is read as the text in the file.

    Raises:
        DamagedInput: the file is over the limit.
        ImportError: the extra is not installed.
    """
    reader = importlib.import_module("openpyxl.worksheet._reader")
    cells = _Cells(max_ratio)
    with ExitStack() as stack:
        parse = reader.WorkSheetParser.parse
        stack.enter_context(patch.object(reader.WorkSheetParser, "parse", lambda sheet: cells.count(parse(sheet))))
        stack.enter_context(patch.object(reader, "from_ISO8601", _date_or_text(reader.from_ISO8601)))
        try:
            yield
        except RefusedError as refused:
            raise DamagedInput(str(refused)) from None


class _Cells:
    """The cells of all sheets of a file."""

    def __init__(self, max_ratio: int) -> None:
        self._max_ratio = max_ratio
        self._n_held = self._n_spanned = 0

    def count(self, rows: Iterator[tuple[int, list[dict[str, Any]]]]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Yield the rows of a sheet, each after it was counted."""
        n_rows = n_columns = width_of_all = 0
        n_before = self._n_spanned
        for number, cells in rows:
            filled = [cell["column"] for cell in cells if cell["value"] is not None]
            n_rows = max(n_rows, number if filled or number > _LAST_ROW else 0)
            n_columns = max(n_columns, *filled, 1)
            width_of_all += max((cell["column"] for cell in cells), default=0)  # empty cells with a style are filled up
            self._n_held += len(cells)
            self._n_spanned = n_before + max(n_rows * n_columns, width_of_all)
            self._check()
            yield number, cells

    def _check(self) -> None:
        if self._n_spanned > max(_MIN_SPANNED, self._max_ratio * self._n_held):
            raise RefusedError(
                f"its sheets span {self._n_spanned:,} cells and hold {self._n_held:,}, over "
                f"{self._max_ratio} times as many; delete the cells that are far from the others, or exclude the file"
            )


def _date_or_text(read_date: Callable[[str], Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return read_date(text)
        except (ValueError, OverflowError):
            return text

    return read
