"""Vector files of an imported index: what is not finite, ragged or given twice is refused with file, row and value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.interchange.graphrag_vectors import read_graphrag_vectors
from graphrag_pipeline.storage.vectors.folders import connect

NAME = "default-entity-description"
OF_ANY_LENGTH = pa.list_(pa.float64())


def source_with(folder: Path, ids: list[str | None], vectors: list, type_: pa.DataType = OF_ANY_LENGTH) -> Path:
    """A folder that counts as an output folder, with one vector table."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "entities.parquet").write_bytes(b"")
    rows = pa.table({"id": pa.array(ids, pa.string()), "numbers": pa.array(vectors, type_)})
    table = connect(folder / "lancedb").create_table(NAME, data=rows)
    table.alter_columns({"path": "numbers", "rename": "vector"})  # a column of this name is checked when it is written
    return folder


@pytest.mark.parametrize(
    ("ids", "vectors", "message"),
    [
        (["a", "b"], [[1.0, 0.0], [float("nan"), 1.0]], r"row 1 \(id 'b'\), number 0 is nan"),
        (["a", "b"], [[1.0, 0.0], [1.0, float("-inf")]], r"row 1 \(id 'b'\), number 1 is -inf"),
        (["a", "b"], [[1e39, 0.0], [1.0, 0.0]], r"row 0 \(id 'a'\), number 0 is inf"),
        (["a", "b"], [[1.0, None], [1.0, 0.0]], r"row 0 \(id 'a'\), number 1 is nan"),
        (["a", "b"], [[1.0, 0.0, 0.0], [1.0]], r"row 1 \(id 'b'\) has 1 numbers, but row 0 has 3"),
        (["a", None, "a"], [None, [1.0], [1.0]], "column 'id', row 1 is empty"),
        (["a", "b", "a"], [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], "row 2 has the id 'a' of row 0 and another vector"),
    ],
)
def test_a_wrong_vector_is_refused_with_file_row_and_value(
    tmp_path: Path, ids: list, vectors: list, message: str
) -> None:
    with pytest.raises(PipelineError, match=message) as refused:
        read_graphrag_vectors(source_with(tmp_path, ids, vectors))
    assert f"{NAME}.lance" in str(refused.value) and "remove it to make the vectors here" in str(refused.value)


def test_an_empty_and_a_missing_vector_are_left_out_and_equal_texts_have_one(tmp_path: Path) -> None:
    ids, vectors = ["a", "b", "a", "c"], [[1.0, 0.0], None, [0.999, 0.001], [0.0, 0.0]]
    found = read_graphrag_vectors(source_with(tmp_path, ids, vectors, pa.list_(pa.float32(), 2)))[NAME]
    assert found.ids == ["a", "c"]
    np.testing.assert_array_equal(found.matrix, np.array([[1, 0], [0, 0]], np.float32))
