"""Mappings that `doctor` proposes for files of rows: which column is the entity of a row, and which name others.

A guess for a person to read, correct and put into `input.tables`: nothing is mapped without it. Keep out: reading rows
(`inputs/rows.py`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from graphrag_pipeline.filters import each_value, flatten_metadata
from graphrag_pipeline.inputs.formats import STRUCTURED
from graphrag_pipeline.inputs.source_records import SourceRecord, is_row_number
from graphrag_pipeline.settings.input import SHEET, InputSettings
from graphrag_pipeline.text.document_names import MIN_LETTERS

MAX_ROWS = 500
"""Rows of a file that are looked at."""
MAX_LENGTH = 80
"""Characters of a name."""
DELIMITERS = ("", ",", ";", "|")
MIN_KNOWN = 0.5
"""Share of the different values of a column that must be names of rows, or of persons."""

_Columns = dict[str, list[list[str]]]


def propose_tables(records: Iterable[SourceRecord], settings: InputSettings) -> list[dict[str, Any]]:
    """Return a mapping for each file of rows, or sheet of several, that has none and whose rows have names."""
    files: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for record in records:
        is_row = record.record and not record.problem and record.chunks is None and record.format in STRUCTURED
        values = json.loads(record.metadata) if is_row and len(files[record.path]) < MAX_ROWS else None
        if values and settings.mapping_of(record.path, record.record, values) is None:
            sheet = values.pop(SHEET, "") if record.format == "xlsx" else ""
            own = {} if is_row_number(record.record) else {settings.id_column: record.record}
            ordered = sorted(values, key=lambda name: f"; {record.text}".find(f"; {name}: "))
            rows = files[f"{record.path}#{sheet}" if sheet else record.path]
            rows += [own | {name: values[name] for name in ordered}] if len(rows) < MAX_ROWS else []
    columns = {path: _columns_of(rows) for path, rows in files.items()}
    named = {path: name for path, found in columns.items() if (name := _find_entity(found, len(files[path])))}
    types: dict[str, str] = {}
    for path, column in named.items():
        for [name] in columns[path][column]:
            types.setdefault(name, _type_of(column, path, settings))
    return [
        {
            "files": path,
            "entity": column,
            "type": _type_of(column, path, settings),
            "relationships": {
                other: related
                for other, values in columns[path].items()
                if other != column and (related := _find_related(values, types))
            },
        }
        for path, column in named.items()
    ]


def _columns_of(rows: Sequence[Mapping[str, Any]]) -> _Columns:
    """Return column -> the texts of each row that has some."""
    columns: defaultdict[str, list[list[str]]] = defaultdict(list)
    for row in rows:
        for column, value in flatten_metadata(row):
            texts = [" ".join(str(one).split()) for one in each_value(value) if not isinstance(one, dict)]
            if any(texts):
                columns[column].append(texts)
    return columns


def _find_entity(columns: _Columns, n_rows: int) -> str:
    """Return the first column with one short text a row, each with a letter and different from the others, or ""."""
    for column, rows in columns.items():
        texts = {row[0] for row in rows if len(row) == 1 and _is_name(row[0])}
        if len(texts) == n_rows > 1:
            return column
    return ""


def _is_name(text: str) -> bool:
    return len(text) <= MAX_LENGTH and sum(map(str.isalpha, text)) >= MIN_LETTERS


def _type_of(column: str, path: str, settings: InputSettings) -> str:
    """Return a type for the entities of a column: its name, or that of sheet or file for a column of ids or titles."""
    is_general = column in ("name", settings.id_column, settings.title_column)
    return (path.partition("#")[2] or PurePosixPath(path).stem if is_general else column).upper()


def _find_related(rows: list[list[str]], types: Mapping[str, str]) -> dict[str, str]:
    """Return type and delimiter of a column that names rows or persons; {} for any other."""
    best: tuple[float, dict[str, str]] = (0.0, {})
    for delimiter in DELIMITERS:
        parts = {
            part.strip() for row in rows for text in row for part in (text.split(delimiter) if delimiter else [text])
        }
        found = [types[part] for part in sorted(parts) if part in types]
        share = len(found) / len(parts)
        if found and share >= MIN_KNOWN and share > best[0]:
            best = share, {"type": max(found, key=found.count), **({"split": delimiter} if delimiter else {})}
    whole = {text for row in rows for text in row}
    n_persons = sum(len(text.split()) in (2, 3) and text.istitle() for text in whole)
    return best[1] or ({"type": "PERSON"} if n_persons >= MIN_KNOWN * len(whole) else {})
