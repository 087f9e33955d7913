"""Reading records of a snapshot by row."""

import pytest

from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline_tests.support.corpora import small_index


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return small_index.freeze(tmp_path_factory.mktemp("small"))


def test_records_and_columns_are_those_of_the_table_in_the_order_of_the_rows(snapshot: Snapshot) -> None:
    for name in ("entities", "relationships", "text_units", "documents", "community_reports"):
        whole = snapshot.table(name).to_pylist()
        rows = [len(whole) - 1, 0, 0]
        expected = [whole[row] for row in rows]
        columns = list(expected[0])
        assert snapshot.take(name, rows) == expected
        values = snapshot.take_columns(name, rows, columns)
        assert [dict(zip(columns, record, strict=True)) for record in zip(*values, strict=True)] == expected
        assert [type(value) for value in snapshot.take(name, [0])[0].values()] == [*map(type, whole[0].values())]


@pytest.mark.parametrize("row", [-1, 1_000_000])
def test_a_row_that_the_table_lacks_is_an_error_and_not_another_row(snapshot: Snapshot, row: int) -> None:
    with pytest.raises(IndexError, match="entities: rows"):
        snapshot.take_columns("entities", [0, row], ["degree"])
