"""Overrides of entities by the user: rows `merge,a,b` and `keep_apart,a,b` of `entity_overrides.csv`.

`merge` makes a another name of b, independent of rules and types. `keep_apart` has priority over every rule, also over
a tie of two names inside a document. Deleting a row undoes it, because mentions are never edited and the graph is built
from them again. Keep out: reading the file (the caller has its bytes), applying rows (`resolution.py`, `titles.py`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.settings.settings import OVERRIDES_FILE

if TYPE_CHECKING:
    import pyarrow.dataset as ds

MERGE, KEEP_APART = "merge", "keep_apart"
COLUMNS = ("action", "a", "b")
MAX_ERRORS_SHOWN = 20
SCHEMA = pa.schema([pa.field(column, pa.string(), nullable=False) for column in COLUMNS])


def read_overrides(data: bytes) -> pa.Table:
    """Read an overrides file: titles normalized, without duplicate rows, sorted.

    The first line names the columns `action,a,b` in any order; other columns, such as a note, are ignored. Commas,
    semicolons or tabs separate columns. Blank lines and lines that start with # are skipped.

    Returns:
        `action` ("merge" or "keep_apart"), `a`, `b`; the two titles of a keep_apart are in order.

    Raises:
        PipelineError: the file is not UTF-8, rows cannot be read, or rows contradict each other. The message names each
            such line, up to `MAX_ERRORS_SHOWN`.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise PipelineError(
            f"{OVERRIDES_FILE} line {line}: not UTF-8 text; save the file as UTF-8 (CSV UTF-8 in Excel)"
        ) from None
    lines: dict[tuple[str, str, str], int] = {}
    errors: dict[int, str] = {}
    for line, row in _rows(text):
        if isinstance(row, str):
            errors[line] = row
        else:
            lines.setdefault(row, line)
    _refuse(errors | dict(_find_contradictions(lines)))
    return pa.table({name: [row[n] for row in sorted(lines)] for n, name in enumerate(COLUMNS)}, schema=SCHEMA)


def _refuse(errors: dict[int, str]) -> None:
    """Raise one error that names every faulty line, if there is any."""
    if not errors:
        return
    named = [f"{OVERRIDES_FILE} line {line}: {errors[line]}" for line in sorted(errors)]
    n_more = len(named) - MAX_ERRORS_SHOWN
    more = [f"and {n_more} more lines"] if n_more > 0 else []
    raise PipelineError(".\n".join(named[:MAX_ERRORS_SHOWN] + more))


def find_unused(overrides: pa.Table, entities: ds.Dataset) -> list[str]:
    """Return a warning for each row with a name that no entity has; all other rows are applied.

    Args:
        entities: from `merge_graph`; needs `title` and `names`.
    """
    wanted = {title for _, *pair in split_rows(overrides) for title in pair}
    titles: set[str] = set()
    for batch in entities.to_batches(columns=["title", "names"]) if wanted else ():
        titles.update(wanted.intersection(batch["title"].to_pylist()))
        names = batch["names"].flatten().unique().to_pylist()
        titles.update(wanted.intersection(map(normalize_title, names)))
    messages = []
    for action, a, b in split_rows(overrides):
        unknown = [title for title in (a, b) if title not in titles]
        if unknown:
            names = " or ".join(repr(title) for title in unknown)
            messages.append(
                f"{OVERRIDES_FILE}: {action},{a},{b} has no effect: no entity is named {names}; see entities.names"
            )
    return messages


def split_rows(overrides: pa.Table) -> Iterator[tuple[str, str, str]]:
    """Return (action, a, b) of every row."""
    return zip(*(overrides[column].to_pylist() for column in COLUMNS), strict=True)


_Row = tuple[str, str, str]


def _rows(text: str) -> Iterator[tuple[int, _Row | str]]:
    """Yield (line, row or error message); stop after a header or quotes that cannot be read."""
    places: list[int] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), skipinitialspace=True)
    try:
        for fields in reader:
            if not any(field.strip() for field in fields) or fields[0].startswith("#"):
                continue
            if places:
                yield reader.line_num, _read_row(fields, places)
                continue
            names = [field.strip().lower() for field in fields]
            missing = [column for column in COLUMNS if column not in names]
            if missing:
                yield reader.line_num, f"no column {', '.join(missing)}; the first line must be {','.join(COLUMNS)}"
                return
            places = [names.index(column) for column in COLUMNS]
    except csv.Error as error:
        yield reader.line_num, f"{error}; correct the quotes of this line"


def _delimiter(text: str) -> str:
    header = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    return max(",;\t", key=header.count)


def _read_row(fields: list[str], places: list[int]) -> _Row | str:
    """Return a row, or an error message."""
    if len(fields) <= max(places):
        return f"{len(fields)} fields; write {','.join(COLUMNS)}"
    action, a, b = (fields[place] for place in places)
    action = action.strip().lower().replace(" ", "_").replace("-", "_")
    if action not in (MERGE, KEEP_APART):
        return f"action {action!r} is unknown; write {MERGE} or {KEEP_APART}"
    a, b = normalize_title(a), normalize_title(b)
    if not a or not b:
        return f"a name is empty; write {action},A NAME,ANOTHER NAME"
    if a == b:
        return f"both names are {a!r}, one entity anyway; delete the line"
    return (action, a, b) if action == MERGE else (action, min(a, b), max(a, b))


def _find_contradictions(lines: dict[_Row, int]) -> Iterator[tuple[int, str]]:
    """Yield (line, error message) of rows that contradict the rows above them."""
    into: dict[str, str] = {}
    for (action, a, b), line in lines.items():
        if action != MERGE:
            continue
        if a in into:
            above = lines[MERGE, a, into[a]]
            yield line, f"{a!r} is merged into {into[a]!r} by line {above} already; delete one of the two"
        elif follow(b, into) == a:
            yield line, f"{b!r} is merged into {a!r} already; delete one of the two"
        else:
            into[a] = b
    for (action, a, b), line in lines.items():
        if action == KEEP_APART and follow(a, into) == follow(b, into):
            merged = sorted(lines[MERGE, title, into[title]] for title in _path((a, b), into))
            by = ", ".join(map(str, merged))
            yield line, f"{a!r} and {b!r} are kept apart here and merged by line {by}; delete one of the two"


def follow(title: str, into: dict[str, str]) -> str:
    """Return the end of a chain of merges."""
    while title in into:
        title = into[title]
    return title


def _path(titles: Iterable[str], into: dict[str, str]) -> set[str]:
    path = set()
    for title in titles:
        while title in into:
            path.add(title)
            title = into[title]
    return path
