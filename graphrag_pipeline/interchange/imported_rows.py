"""Order, ids and numbers of imported rows of any table, and the notes on repairs.

Pure. Keep out: the meaning of columns.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphrag_pipeline.identity import stable_hash

Row = dict[str, Any]
Rows = dict[str, Row]  # by id, in the order of their numbers

KINDS = {
    "documents": "document", "text_units": "text_unit", "entities": "entity", "relationships": "relationship",
    "covariates": "covariate", "communities": "community",
}  # fmt: skip
"""Contract table -> kind in `record_numbers`."""

_NOUNS = {
    "documents": "document", "text_units": "text unit", "entities": "entity", "relationships": "relationship",
    "covariates": "claim", "communities": "community", "community_reports": "report",
}  # fmt: skip


class RepairNotes:
    """Notes on repairs, in the order in which the defects were found.

    Notes are part of the manifest, so their wording is part of the id of an imported snapshot.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, n: int, noun: str, rest: str) -> None:
        """Note `n` cases, none if n is 0; `{was}` in `rest` becomes was or were."""
        if n:
            plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
            self.lines.append(f"{n} {noun if n == 1 else plural} {rest.format(was='was' if n == 1 else 'were')}")


def order_rows(rows: Iterable[Row], number: str = "human_readable_id") -> list[Row]:
    """Sort rows by number (null last), then id, then content: the same list for any order of the rows."""

    def key(row: Row) -> tuple[bool, int, str]:
        return row[number] is None, row[number] or 0, row.get("id") or ""

    ordered: list[Row] = []
    for _, group in itertools.groupby(sorted(rows, key=key), key):
        tied = list(group)
        ordered += sorted(tied, key=canonical) if len(tied) > 1 else tied
    return ordered


def canonical(row: Row) -> str:
    """Return one text per content."""
    return json.dumps(row, sort_keys=True, ensure_ascii=False)


def give_ids(table: str, rows: Iterable[Row], notes: RepairNotes) -> list[Row]:
    """Return copies of ordered rows, each with a unique id; identical rows are kept once."""
    noun = _NOUNS[table]
    seen: set[str] = set()
    kept: list[Row] = []
    previous: Row | None = None
    n_repeated = n_given = 0
    for row in rows:
        if row == previous:
            n_repeated += 1
            continue
        previous = row
        own = dict(row)
        if not own["id"] or own["id"] in seen:
            own["id"] = stable_hash("imported", table, canonical(row))
            n_given += 1
        seen.add(own["id"])
        kept.append(own)
    notes.add(n_repeated, noun, "repeated word for word {was} kept once")
    notes.add(n_given, noun, "whose id was missing or taken {was} given a new one")
    return kept


class ImportedNumbering:
    """Numbers of imported records: those of the source if unique, else the next free ones."""

    def __init__(self, notes: RepairNotes) -> None:
        self._notes = notes
        self._next = dict.fromkeys(KINDS.values(), 0)

    def give_numbers(self, table: str, rows: list[Row]) -> list[Row]:
        """Give each of `rows` a unique `human_readable_id`, in place, and return them."""
        kind = KINDS[table]
        following = 1 + max((row["human_readable_id"] or 0 for row in rows), default=-1)
        seen: set[int] = set()
        n_given = 0
        for row in rows:
            number = row["human_readable_id"]
            if number is None or number < 0 or number in seen:
                row["human_readable_id"], following = following, following + 1
                n_given += 1
            seen.add(row["human_readable_id"])
        self._next[kind] = following
        self._notes.add(n_given, _NOUNS[table], "whose human_readable_id was missing or taken {was} numbered again")
        return rows

    def next_number(self, kind: str) -> int:
        """Return the next free number of a kind and mark it as used."""
        self._next[kind] += 1
        return self._next[kind] - 1

    def use_up(self, kind: str, number: int) -> None:
        """Mark all numbers up to this one as used."""
        self._next[kind] = max(self._next[kind], number + 1)

    def record_numbers(self, tables: Mapping[str, Sequence[Row]]) -> list[Row]:
        """Return the rows of `record_numbers` for the rows of the contract tables."""
        rows = [
            {"kind": kind, "id": row["id"], "number": row["human_readable_id"]}
            for table, kind in KINDS.items()
            for row in tables[table]
        ]
        return rows + [{"kind": kind, "id": "", "number": self._next[kind]} for kind in KINDS.values()]


def distinct_texts(texts: Iterable[str | None]) -> str:
    """Return the distinct texts that are not blank, sorted, one per line."""
    return "\n".join(sorted({text for text in texts if text and text.strip()}))
