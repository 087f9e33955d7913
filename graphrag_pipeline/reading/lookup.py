"""Find one record of an index by its name, number or id."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np
import pyarrow.compute as pc

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import normalize_title, stable_hash
from graphrag_pipeline.inputs.source_records import is_row_number
from graphrag_pipeline.query.index_reader import SnapshotReader
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.text.document_names import name_document

_KEY = re.compile(r"text-[0-9a-f]{32}")


def shared_key(snapshot: Snapshot, document_id: str) -> str:
    """Return the key of a document of a snapshot; its id if the snapshot does not have it."""
    row = int(snapshot.rows_of("documents", [document_id])[0])
    if row < 0:
        return document_id
    [found] = snapshot.take("documents", [row], ["path", "record", "text"])
    return _key_of(found["path"], found["text"]) if is_row_number(found["record"] or "") else document_id


def find_by_shared_key(reader: SnapshotReader, key: str) -> list[int]:
    """Return the rows of the documents with a key that is no id; equal texts of one file have one key."""
    if not _KEY.fullmatch(key):
        return []
    documents = reader.snapshot.table("documents")
    rows = pc.indices_nonzero(pc.starts_with(pc.fill_null(documents["record"], ""), "#")).to_pylist()
    found = reader.snapshot.take("documents", rows, ["path", "text"])
    return [row for row, one in zip(rows, found, strict=True) if _key_of(one["path"], one["text"]) == key]


def _key_of(path: str, text: str) -> str:
    return f"text-{stable_hash(path, text)[:32]}"


TABLE_OF_KIND = {
    "entity": "entities",
    "report": "community_reports",
    "document": "documents",
    "community": "communities",
}
TABLE_OF_KEYED = {"relationship": "relationships", "text_unit": "text_units"}
"""Kinds of records that have no names."""
N_NEAREST = 5
_LOWEST_SCORE = 70.0
"""Least likeness (0 to 100) of a name that is suggested."""
_LIKELY = 100
"""Names of which the likeness is computed: those that rapidfuzz finds by parts, which a short name shares with many."""
_SHOWN = 80
_PARTS = re.compile(r"[\s/._-]+")
"""What parts the words of a name or path."""


@dataclass(frozen=True)
class RecordName:
    """A record that was perhaps meant; `detail` tells records of one title apart."""

    number: int
    title: str
    detail: str


class RecordNameError(PipelineError):
    """A name means no record, or several of them.

    Attributes:
        nearest: the records that were perhaps meant, the likeliest first.
        is_ambiguous: the name means all of them.
    """

    def __init__(self, message: str, nearest: tuple[RecordName, ...], is_ambiguous: bool) -> None:
        super().__init__(message)
        self.nearest = nearest
        self.is_ambiguous = is_ambiguous


def find_record(reader: SnapshotReader, kind: str, text: str) -> int:
    """Return the row of the record that a text means.

    Args:
        kind: one of `TABLE_OF_KIND`.
        text: id, name in any case, alias, path or number (`12` or `#12`).

    Raises:
        RecordNameError: it means no record that may be read, or several.
    """
    wanted = text.strip()
    for find in (_find_by_id, _find_by_title, _find_by_name, _find_by_code, _find_by_number):
        rows = find(reader, kind, wanted)
        if len(rows) == 1:
            return rows[0]
        if rows:
            raise _ambiguous(reader, kind, wanted, rows)
    raise _unknown(reader, kind, wanted)


def is_record_number(text: str) -> bool:
    """Return whether a text can be the number of a record: up to 15 of the digits 0 to 9."""
    return text.isascii() and text.isdecimal() and len(text) <= 15


def find_by_key(reader: SnapshotReader, kind: str, key: str) -> int:
    """Return the row of the record of an id or number; its kind has no names.

    Args:
        kind: one of `TABLE_OF_KEYED`.

    Raises:
        RecordNameError: no record that may be read has this key.
    """
    table, text = TABLE_OF_KEYED[kind], key.strip()
    rows = [int(reader.snapshot.rows_of(table, [text])[0])]
    if rows[0] < 0 or not reader.row_mask(table)[rows[0]]:
        digits = text.removeprefix("#")
        is_number = is_record_number(digits)
        rows = reader.rows_of_numbers(table, "human_readable_id", [int(digits)]).tolist() if is_number else [-1]
    if rows[0] < 0:
        raise RecordNameError(
            f"no {kind.replace('_', ' ')} has the number or id `{text[:_SHOWN]}`", (), is_ambiguous=False
        )
    return rows[0]


def find_nearest(reader: SnapshotReader, kind: str, text: str, n_most: int = N_NEAREST) -> tuple[RecordName, ...]:
    """Return the records whose names are the most like a text, at most `n_most`, the likeliest first; perhaps none."""
    from rapidfuzz import fuzz, process

    named, wanted = list(_names(reader, kind)), text.casefold()
    folded = [name.casefold() for name, _ in named]
    likely = process.extract(wanted, folded, scorer=fuzz.WRatio, limit=max(_LIKELY, 4 * n_most))
    scored = sorted(((-_likeness(wanted, name), -score, place) for name, score, place in likely))
    rows = dict.fromkeys(named[place][1] for likeness, _, place in scored if -likeness >= _LOWEST_SCORE)
    return name_records(reader, kind, list(rows)[:n_most])


def _likeness(text: str, name: str) -> float:
    """Return how alike a text and a name are, 0 to 100: as wholes, or each word of the text to a word of the name."""
    from rapidfuzz import fuzz

    parts = [part for part in _PARTS.split(name) if part]
    best = [max((fuzz.ratio(word, part) for part in parts), default=0.0) for word in _PARTS.split(text) if word]
    return max(fuzz.ratio(text, name), sum(best) / len(best) if best else 0.0)


def list_names(reader: SnapshotReader, kind: str, start: str, n_most: int) -> list[str]:
    """Return names that begin with a text in any case, in file order; for completion."""
    folded = start.casefold()
    found = (name for name, _ in _names(reader, kind) if name.casefold().startswith(folded))
    return list(dict.fromkeys(name for name, _ in zip(found, range(n_most), strict=False)))


def name_records(reader: SnapshotReader, kind: str, rows: Sequence[int]) -> tuple[RecordName, ...]:
    """Return the titles of some rows, with what tells them apart."""
    columns = {
        "entity": ["type"],
        "report": ["community", "level"],
        "document": ["path", "record"],
        "community": ["level", "size"],
    }[kind]
    found = reader.snapshot.take(TABLE_OF_KIND[kind], list(rows), ["human_readable_id", "title", *columns])
    return tuple(RecordName(row["human_readable_id"], row["title"], _detail(row, columns)) for row in found)


def _detail(row: dict, columns: Sequence[str]) -> str:
    parts = (str(row[name]) if name in ("type", "path", "record") else f"{name} {row[name]}" for name in columns)
    return ", ".join(filter(None, parts))


# ---------------------------------------------------------------------------------------------------------------- ways


def _find_by_id(reader: SnapshotReader, kind: str, text: str) -> list[int]:
    if kind == "document" and (found := _readable(reader, kind, find_by_shared_key(reader, text))):
        return found[:1]  # each has the same text
    return _readable(reader, kind, reader.snapshot.rows_of(TABLE_OF_KIND[kind], [text]).tolist())


def _find_by_title(reader: SnapshotReader, kind: str, text: str) -> list[int]:
    columns = ("path", "title") if kind == "document" else ("title",)
    table = reader.snapshot.table(TABLE_OF_KIND[kind])
    wanted = normalize_title(text) if kind == "entity" else text
    for column in columns:
        rows = _readable(reader, kind, np.flatnonzero(pc.equal(table[column], wanted).to_numpy()).tolist())
        if rows:
            return rows
    return []


def _find_by_name(reader: SnapshotReader, kind: str, text: str) -> list[int]:
    if kind == "entity":
        return _readable(reader, kind, reader.names.find_by_key(text))
    folded = text.casefold()
    return list(dict.fromkeys(row for name, row in _names(reader, kind) if name.casefold() == folded))


def _find_by_code(reader: SnapshotReader, kind: str, text: str) -> list[int]:
    """Return the documents that a question can call by a text: a code, a part of the title, or the stem of the file."""
    if kind != "document":
        return []
    folded, columns = text.casefold(), (_column(reader, "documents", name) for name in ("title", "path", "record"))
    named = (
        name_document(title or "", "" if record else path or "") for title, path, record in zip(*columns, strict=True)
    )
    rows = (row for row, one in enumerate(named) if folded in map(str.casefold, (one.main, *one.others)))
    return _readable(reader, kind, rows)


def _find_by_number(reader: SnapshotReader, kind: str, text: str) -> list[int]:
    digits = text.removeprefix("#")
    if not is_record_number(digits):
        return []
    column = "community" if kind == "community" else "human_readable_id"
    rows: list[int] = reader.rows_of_numbers(TABLE_OF_KIND[kind], column, [int(digits)]).tolist()
    return [row for row in rows if row >= 0]


def _readable(reader: SnapshotReader, kind: str, rows: Iterable[int]) -> list[int]:
    mask = reader.row_mask(TABLE_OF_KIND[kind])
    return [row for row in rows if row >= 0 and mask[row]]


# --------------------------------------------------------------------------------------------------------------- names


def _names(reader: SnapshotReader, kind: str) -> Iterable[tuple[str, int]]:
    """Yield every name of a kind with the row of its record; the title first."""
    mask = reader.row_mask(TABLE_OF_KIND[kind])
    read = functools.partial(_column, reader, TABLE_OF_KIND[kind])
    titles = read("title")
    also = {
        "entity": lambda: read("names"),
        "report": lambda: [()] * len(titles),
        "document": lambda: [(path, PurePosixPath(path or "").name) for path in read("path")],
        "community": lambda: _report_titles(reader),
    }[kind]()
    for row, (title, others) in enumerate(zip(titles, also, strict=True)):
        if mask[row]:
            yield from ((name, row) for name in (title, *(others or ())) if name)


def _column(reader: SnapshotReader, table: str, column: str) -> list:
    values: list = reader.snapshot.table(table)[column].to_pylist()
    return values


def _report_titles(reader: SnapshotReader) -> list[tuple[str, ...]]:
    reports = reader.snapshot.table("community_reports").select(["community", "title"]).to_pylist()
    mask = reader.row_mask("community_reports")
    titles = {row["community"]: row["title"] for row, is_read in zip(reports, mask, strict=True) if is_read}
    return [(titles.get(number, ""),) for number in _column(reader, "communities", "community")]


# -------------------------------------------------------------------------------------------------------------- errors


def _unknown(reader: SnapshotReader, kind: str, text: str) -> RecordNameError:
    nearest = find_nearest(reader, kind, text) if text else ()
    listed = f"the nearest: {_list(nearest)}" if nearest else _where_to_look(kind)
    return RecordNameError(f"no {kind} is called `{text[:_SHOWN]}`; {listed}", nearest, is_ambiguous=False)


def _ambiguous(reader: SnapshotReader, kind: str, text: str, rows: Sequence[int]) -> RecordNameError:
    named = name_records(reader, kind, rows[: 2 * N_NEAREST])
    more = f" and {len(rows) - len(named):,} more" if len(rows) > len(named) else ""
    plural = {"entity": "entities", "community": "communities"}.get(kind, f"{kind}s")
    return RecordNameError(
        f"`{text[:_SHOWN]}` names {len(rows):,} {plural}: {_list(named)}{more}; use one of these numbers",
        named,
        is_ambiguous=True,
    )


def _list(named: Sequence[RecordName]) -> str:
    return ", ".join(f"{one.title} (number {one.number}{', ' if one.detail else ''}{one.detail})" for one in named)


def _where_to_look(kind: str) -> str:
    table = TABLE_OF_KIND[kind]
    return f"`graphrag-pipeline sql 'SELECT human_readable_id, title FROM {table}'` lists all"
