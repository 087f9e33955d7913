"""Columns and tables of the contract: a pyarrow schema, the texts that document it, and the order of rows in a file.

Keep out: the tables themselves (`stage.py`, `contract.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.arrow_columns import join_rows
from graphrag_pipeline.identity import stable_hash

STRINGS = pa.list_(pa.string())


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        description: for people: meaning, unit, range. It is not part of the schema, so files and code versions do not
            change with it.
        is_nullable: whether null is valid.
    """

    name: str
    type: pa.DataType
    description: str
    is_nullable: bool = False


@dataclass(frozen=True)
class Table:
    """One table of the contract.

    Attributes:
        name: the table's name in folders, views and assets.
        columns: in file order.
        key: columns that identify a row; rows are saved in this order unless `order` says otherwise.
        owner: the stage that writes it.
        description: for people: the meaning of a row.
        references: column -> (table, column) of the same layer that must hold each of its values (lists element-wise).
        order: columns that rows are sorted by; the key if empty.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    owner: str
    description: str
    references: dict[str, tuple[str, str]] = field(default_factory=dict)
    order: tuple[str, ...] = ()

    @cached_property
    def schema(self) -> pa.Schema:
        """Names, types and nullability of the columns, in file order; no metadata."""
        return pa.schema([pa.field(column.name, column.type, column.is_nullable) for column in self.columns])

    @property
    def sort_columns(self) -> tuple[str, ...]:
        return self.order or self.key

    @property
    def schema_hash(self) -> str:
        return stable_hash(self.name, str(self.schema), *self.key)

    def column(self, name: str) -> Column:
        """Return the column of a name.

        Raises:
            KeyError: the table has no such column.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"table {self.name}: unknown column {name}")

    def from_rows(self, rows: list[dict]) -> pa.Table:
        """Build a sorted table from row dictionaries.

        A missing nullable column is null.

        Raises:
            KeyError: a row has a column that the table does not have.
        """
        unknown = {name for row in rows for name in row} - set(self.schema.names)
        if unknown:
            raise KeyError(f"table {self.name}: unknown columns {sorted(unknown)}")
        return self.sort(pa.Table.from_pylist(rows, schema=self.schema))

    def empty(self) -> pa.Table:
        return self.schema.empty_table()

    def sort(self, *parts: pa.Table) -> pa.Table:
        """Return the rows of all parts in the schema and in file order, in one chunk: equal content gives equal bytes.

        A column of more than 2 GiB gets a wide type in memory (`arrow_columns.join_rows`). Rows that are sorted already
        are not copied, because tables of vectors are large.
        """
        cast = join_rows(parts, self.schema)
        if pc.all(_is_less(cast, self.sort_columns)).as_py() is False:
            cast = cast.sort_by([(column, "ascending") for column in self.sort_columns])
        return cast.combine_chunks()


def _is_less(rows: pa.Table, columns: Sequence[str]) -> pa.ChunkedArray:
    """Whether each row is before the next one, by the columns in turn."""
    values = rows[columns[0]]
    before, after = values[:-1], values[1:]
    is_less = pc.less(before, after)
    if len(columns) == 1:
        return is_less
    return pc.or_(is_less, pc.and_(pc.equal(before, after), _is_less(rows, columns[1:])))
