"""Columns over 2 GiB in memory, and the types of files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from graphrag_pipeline import arrow_columns
from graphrag_pipeline.arrow_columns import join_rows, narrow_type, one_chunk, take, wide_type
from graphrag_pipeline.tables import CONTRACT_TABLES, STAGE_TABLES


@pytest.mark.thorough
def test_lists_of_more_than_2_gib_of_text_are_joined() -> None:
    texts = pa.array(["x" * 2**20]).take(pa.array(np.zeros(1_100, dtype=np.int64)))
    rows = pa.table({"texts": pa.ListArray.from_arrays(pa.array([0, 500, 1_100], pa.int32()), texts)})
    with pytest.raises(pa.ArrowInvalid, match="offset overflow"):
        pa.concat_tables([rows, rows]).combine_chunks()
    joined = join_rows([rows, rows], rows.schema)
    assert joined["texts"].num_chunks == 1
    assert [len(texts) for texts in joined["texts"].chunk(0)] == [500, 600, 500, 600]
    assert joined["texts"].chunk(0)[3][-1].as_buffer().size == 2**20


@pytest.mark.parametrize("table", [*STAGE_TABLES.values(), *CONTRACT_TABLES.values()], ids=lambda table: table.name)
def test_files_have_the_narrow_type_of_every_column(table) -> None:
    for field in table.schema:
        assert narrow_type(field.type) == narrow_type(wide_type(field.type)) == field.type


def test_a_column_is_wide_only_if_it_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_columns, "MAX_BYTES", 40)
    few, many = pa.chunked_array([["a"], ["b"]]), pa.chunked_array([["a" * 20], ["b" * 20]])
    assert [one_chunk(column).type for column in (few, many)] == [pa.string(), pa.large_string()]
    assert take(few, np.zeros(20, dtype=np.int64)).type == pa.large_string()
    numbers = pa.chunked_array([[1, 2], [3]])
    assert one_chunk(numbers).equals(pa.array([1, 2, 3]))


def test_a_null_where_none_may_be_is_an_error() -> None:
    schema = pa.schema([pa.field("id", pa.string(), nullable=False)])
    with pytest.raises(ValueError, match="'id'"):
        join_rows([pa.table({"id": pa.array([None], pa.string())})], schema)
