"""Defects of an imported index that leave open what was meant, so that no repair is right.

These are two records with one id, two communities with one number, two reports of one community, and communities that
contain each other. An import that has one is refused, with file, rows, value and remedy. Keep out: values of one cell
(`graphrag_files.py`), and defects with one right repair (`imported_tables.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphrag_pipeline.errors import PipelineError

Row = dict[str, Any]
_NAMED_BY_TEXT = ("documents", "text_units")
"""Tables whose ids are hashes of the texts in Microsoft GraphRAG, so that equal texts rightly have one id."""
_ONE_PER_COMMUNITY = ("communities", "community_reports")


def refuse_open_defects(table: str, path: Path, rows: Sequence[Row]) -> None:
    """Check that the rows of one table name each record once, and that no community is inside itself.

    Args:
        path: file of the table, for messages.
        rows: in the order of the file.

    Raises:
        PipelineError: what was meant is open; the message names file, rows, value and remedy.
    """
    _refuse_repeats(path, "id", [(row["id"] or None, _content(table, row)) for row in rows])
    if table in _ONE_PER_COMMUNITY:
        numbers = [number if (number := row["community"]) is not None and number >= 0 else None for row in rows]
        _refuse_repeats(path, "community", list(zip(numbers, rows, strict=True)))
    if table == "communities":
        _refuse_circles(path, rows)


def _content(table: str, row: Row) -> object:
    """Return what rows of one id must have in common."""
    return row["text"] if table in _NAMED_BY_TEXT else row


def _refuse_repeats(path: Path, column: str, keyed: Sequence[tuple[Hashable, object]]) -> None:
    first: dict[Hashable, int] = {}
    for number, (key, content) in enumerate(keyed):
        if key is None:
            continue
        before = first.setdefault(key, number)
        if keyed[before][1] != content:
            raise PipelineError(
                f"{path}: column {column!r}, row {number}: {key!r} is also in row {before}, which differs; nothing was "
                "imported. Give one of the two another value, also where others name it, or remove it, or export the "
                "index again"
            )


def _refuse_circles(path: Path, rows: Sequence[Row]) -> None:
    parents = {row["community"]: row["parent"] for row in rows}
    row_of = {row["community"]: number for number, row in enumerate(rows)}
    whole: set[int] = set()  # communities known to lead to a root
    for start in parents:
        trail: dict[int, None] = {}
        number = start
        while _is_inside(number, parents) and number not in whole:
            if number in trail:
                circle = " -> ".join(map(str, [*list(trail)[list(trail).index(number) :], number]))
                raise PipelineError(
                    f"{path}: column 'parent', row {row_of[number]}: community {number} is inside itself ({circle}); "
                    "nothing was imported. Repair the parents (-1 for a community without one), or export the index "
                    "again"
                )
            trail[number] = None
            number = parents[number]
        whole.update(trail)


def _is_inside(number: int, parents: Mapping[int, int | None]) -> bool:
    parent = parents.get(number)
    return number >= 0 and parent is not None and parent >= 0
