"""Reader of the Parquet tables in the output folder of Microsoft GraphRAG.

Knows the names of releases 1.x to 3.x: `entities.parquet` or `create_final_entities.parquet`, in the folder itself or
in `output/`, and renamed columns. Values are converted to the type of the contract's column. Keep out: repairs
(`imported_tables.py`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

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
    _refuse_repeats(path, "id", [(row["id"] or None, row["text"] if table in _NAMED_BY_TEXT else row) for row in rows])
    if table in _ONE_PER_COMMUNITY:
        numbers = [number if (number := row["community"]) is not None and number >= 0 else None for row in rows]
        _refuse_repeats(path, "community", list(zip(numbers, rows, strict=True)))
    if table == "communities":
        _refuse_circles(path, rows)


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


_LARGEST_INTEGER = 2**53
"""Largest magnitude of an imported number; a float holds every smaller whole number."""


@dataclass(frozen=True)
class _SourceColumn:
    """Rule for reading a column.

    Attributes:
        read: converts a value to its type; raises ValueError, TypeError or OverflowError if it cannot.
        is_required: the table cannot be imported without the column.
        needs_value: every row needs a value.
        aliases: its names in other releases.
    """

    read: Callable[[Any], Any]
    is_required: bool = False
    needs_value: bool = False
    aliases: tuple[str, ...] = ()


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _text(value: Any) -> str | None:
    if _is_missing(value):
        return None
    if isinstance(value, (list, dict, bytes)):
        raise ValueError("not a text")
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else value.isoformat() if hasattr(value, "isoformat") else str(value)


def _integer(value: Any) -> int | None:
    if value is None:
        return None
    if not math.isfinite(float(value)) or int(value) != float(value):
        raise ValueError("not a whole number up to 2^53; null stands for an unknown one")
    if abs(int(value)) > _LARGEST_INTEGER:
        raise ValueError("beyond 2^53")
    return int(value)


def _number(value: Any) -> float | None:
    if value is None:
        return None
    if not math.isfinite(float(value)):
        raise ValueError("not a finite number; null stands for an unknown one")
    return float(value)


def _list(value: Any) -> list[Any]:
    """Return a list; JSON text of a list is parsed, and a single text becomes a list of one."""
    if _is_missing(value) or value == "":
        return []
    if isinstance(value, str):
        parsed = json.loads(value) if value.lstrip().startswith("[") else value
        return parsed if isinstance(parsed, list) else [parsed]
    if not isinstance(value, list):
        raise ValueError("not a list")
    return value


def _texts(value: Any) -> list[str]:
    return [text for item in _list(value) if (text := _text(item)) is not None]


def _findings(value: Any) -> list[dict[str, str]]:
    findings = []
    for item in _list(value):
        if isinstance(item, dict):
            findings.append({key: _text(item.get(key)) or "" for key in ("summary", "explanation")})
        elif item is not None:
            findings.append({"summary": str(item), "explanation": ""})
    return findings


def _json(value: Any) -> Any:
    """Return a value as JSON would give it back; text that is a JSON object is parsed."""
    if _is_missing(value):
        return None
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            return _finite(json.loads(value))
        except (json.JSONDecodeError, RecursionError):
            return value
    return json.loads(json.dumps(_finite(value), default=str, allow_nan=False))


def _finite(value: Any) -> Any:
    """Return a value with null for NaN, which pandas writes for a missing cell; an infinite number stays."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if _is_missing(value) else value


_ID, _NUMBER_OF_ROW = _SourceColumn(_text), _SourceColumn(_integer)
_TABLES: dict[str, dict[str, _SourceColumn]] = {
    "documents": {
        "id": _SourceColumn(_text, True, True),
        "human_readable_id": _NUMBER_OF_ROW,
        "title": _SourceColumn(_text),
        "text": _SourceColumn(_text, True, aliases=("raw_content",)),
        "text_unit_ids": _SourceColumn(_texts),
        "creation_date": _SourceColumn(_text),
        "metadata": _SourceColumn(_json),
        "raw_data": _SourceColumn(_json),
    },
    "text_units": {
        "id": _SourceColumn(_text, True, True),
        "human_readable_id": _NUMBER_OF_ROW,
        "text": _SourceColumn(_text, True, True),
        "n_tokens": _SourceColumn(_integer),
        "document_ids": _SourceColumn(_texts, True, aliases=("document_id",)),
        "entity_ids": _SourceColumn(_texts),
        "relationship_ids": _SourceColumn(_texts, aliases=("relationships_ids",)),
    },
    "entities": {
        "id": _SourceColumn(_text, True),
        "human_readable_id": _NUMBER_OF_ROW,
        "title": _SourceColumn(_text, True, aliases=("name",)),
        "type": _SourceColumn(_text),
        "description": _SourceColumn(_text, True),
        "text_unit_ids": _SourceColumn(_texts, True),
        "frequency": _SourceColumn(_integer),
        "degree": _SourceColumn(_integer, aliases=("node_degree",)),
    },
    "relationships": {
        "id": _ID,
        "human_readable_id": _NUMBER_OF_ROW,
        "source": _SourceColumn(_text, True),
        "target": _SourceColumn(_text, True),
        "description": _SourceColumn(_text, True),
        "weight": _SourceColumn(_number),
        "text_unit_ids": _SourceColumn(_texts, True),
    },
    "communities": {
        "id": _ID,
        "community": _SourceColumn(_integer, True, True),
        "level": _SourceColumn(_integer, True, True),
        "parent": _SourceColumn(_integer),
        "title": _SourceColumn(_text),
        "entity_ids": _SourceColumn(_texts, True),
        "relationship_ids": _SourceColumn(_texts),
        "text_unit_ids": _SourceColumn(_texts),
        "period": _SourceColumn(_text),
    },
    "community_reports": {
        "id": _ID,
        "community": _SourceColumn(_integer, True),
        "title": _SourceColumn(_text, True),
        "summary": _SourceColumn(_text, True),
        "full_content": _SourceColumn(_text, True),
        "rank": _SourceColumn(_number, aliases=("rating",)),
        "rating_explanation": _SourceColumn(_text, aliases=("rank_explanation",)),
        "findings": _SourceColumn(_findings),
        "full_content_json": _SourceColumn(_text),
        "period": _SourceColumn(_text),
    },
    "covariates": {
        "id": _ID,
        "human_readable_id": _NUMBER_OF_ROW,
        "covariate_type": _SourceColumn(_text),
        "type": _SourceColumn(_text),
        "description": _SourceColumn(_text, True),
        "subject_id": _SourceColumn(_text, True),
        "object_id": _SourceColumn(_text),
        "status": _SourceColumn(_text),
        "start_date": _SourceColumn(_text),
        "end_date": _SourceColumn(_text),
        "source_text": _SourceColumn(_text),
        "text_unit_id": _SourceColumn(_text, True),
    },
}
_OPTIONAL = {"covariates"}


def read_graphrag_tables(source: Path) -> dict[str, list[Row]]:
    """Return the rows of every table by contract table name; a missing column is null or an empty list.

    Raises:
        PipelineError: a required table or column is missing, a file or value cannot be read, or what was meant is open
            (`refuse_open_defects`).
    """
    folder = output_folder(source)
    return {name: _read_table(folder, name) for name in _TABLES}


def _file_names(table: str) -> tuple[str, str]:
    return f"{table}.parquet", f"create_final_{table}.parquet"


def output_folder(source: Path) -> Path:
    """Return the folder with the Parquet files: `source` itself, or one inside it."""
    for folder in (source, source / "output", source / "artifacts"):
        if any((folder / name).is_file() for table in _TABLES for name in _file_names(table)):
            return folder
    raise PipelineError(
        f"`{source}` and its `output` folder have no GraphRAG index (entities.parquet, create_final_entities.parquet "
        "and others); pass the folder with the Parquet files"
    )


def _read_table(folder: Path, table: str) -> list[Row]:
    path = next((folder / name for name in _file_names(table) if (folder / name).is_file()), None)
    if path is None:
        if table in _OPTIONAL:
            return []
        raise PipelineError(
            f"`{folder}` has neither {table}.parquet nor create_final_{table}.parquet; copy the whole output folder, "
            "or complete GraphRAG's index run"
        )
    try:
        content = pq.ParquetFile(path).read()
    except (pa.ArrowException, OSError) as error:
        raise PipelineError(f"`{path}` cannot be read as Parquet ({error}); copy the file again") from error
    columns = {name: _read_column(path, content, name, column) for name, column in _TABLES[table].items()}
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    refuse_open_defects(table, path, rows)
    return rows


def _read_column(path: Path, content: pa.Table, name: str, column: _SourceColumn) -> list[Any]:
    found = next((alias for alias in (name, *column.aliases) if alias in content.column_names), None)
    if found is None:
        if column.is_required:
            also = "".join(f" or {alias!r}" for alias in column.aliases)
            raise PipelineError(
                f"{path}: column {name!r}{also} is missing (there are: {', '.join(content.column_names)}); "
                "export the index again with this column, or rename the column that holds it"
            )
        return [column.read(None) for _ in range(content.num_rows)]
    values = []
    for row, value in enumerate(_python_values(path, content, found)):
        try:
            values.append(column.read(value))
        except (ValueError, TypeError, OverflowError) as error:
            raise PipelineError(
                f"{path}: column {found!r}, row {row}: {str(value)[:80]!r} is not a valid value ({error}); "
                "repair the column or export the index again"
            ) from error
        if column.needs_value and values[-1] is None:
            raise PipelineError(f"{path}: column {found!r}, row {row} is empty; fill in the value or remove the row")
    return values


def _python_values(path: Path, content: pa.Table, column: str) -> list[Any]:
    values = content.column(content.column_names.index(column))
    try:
        return list(values.to_pylist())
    except (ValueError, OverflowError, pa.ArrowException) as error:
        raise PipelineError(
            f"{path}: column {column!r} has a value that Python cannot hold ({error}); repair the column or export the "
            "index again"
        ) from error
