"""Table store: immutable files, heads as the only thing replaced, versions from content."""

import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pytest

from graphrag_pipeline.errors import DamagedFileError, PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.storage import table_store
from graphrag_pipeline.storage.table_store import Head, TableStore, parquet_bytes, put_parquet
from graphrag_pipeline.tables import STAGE_TABLES
from graphrag_pipeline_tests.support.command_line import started
from graphrag_pipeline_tests.support.damage import flip_bit

TABLE = STAGE_TABLES["corpus_manifest"]


def rows(*ids: str) -> pa.Table:
    base = {"path": "p", "record": "", "format": "txt", "n_bytes": 1, "content_hash": "h"}
    return TABLE.from_rows([{"document_id": i, **base} for i in ids])


def write(store: TableStore, *ids: str, code: str = "1") -> Head:
    return store.write(TABLE, "000", [rows(*ids)], {"algorithm": code}, {"input": "v"})


def test_equal_rows_give_equal_files_and_versions_in_any_order(tmp_path: Path) -> None:
    one, two = TableStore(tmp_path / "1"), TableStore(tmp_path / "2")
    assert write(one, "a", "b") == write(two, "b", "a")
    assert [p.read_bytes() for p in one.paths(one.need(TABLE.name, "000"))] == [
        p.read_bytes() for p in two.paths(two.need(TABLE.name, "000"))
    ]


def test_rows_by_several_columns_are_sorted_and_stay_so(tmp_path: Path) -> None:
    table = STAGE_TABLES["entity_merges"]
    base = {"rule": "alias", "evidence": "", "score": 1.0}
    sorted_rows = table.from_rows([{"name": n, "title": t, **base} for n, t in [("a", "x"), ("a", "y"), ("b", "x")]])
    store = TableStore(tmp_path)
    heads = [store.write(table, "all", [rows], {}, {}) for rows in (sorted_rows, sorted_rows.take([2, 0, 1]))]
    assert heads[0] == heads[1]
    assert store.read("entity_merges").equals(sorted_rows)


def test_a_head_moves_and_the_old_file_stays(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    old = write(store, "a")
    new = write(store, "a", "b")
    assert store.head(TABLE.name, "000") == new
    assert store.read(TABLE.name, "000").num_rows == 2
    assert store.read_head(old)["document_id"].to_pylist() == ["a"]


def test_an_empty_partition_is_a_file_with_its_schema(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    head = write(store)
    assert head.n_rows == 0
    assert len(head.files) == 1
    assert store.read(TABLE.name, "000").schema.equals(TABLE.schema)
    assert store.dataset([head]).to_table().schema.equals(TABLE.schema)


def test_a_missing_partition_or_file_is_named(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    with pytest.raises(PipelineError, match="`corpus_manifest`, partition 003, is not materialized"):
        store.read(TABLE.name, "003")
    head = write(store, "a")
    store.paths(head)[0].unlink()
    assert store.head(TABLE.name, "000") is None


def test_another_number_of_buckets_is_refused_with_the_remedy(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    store.check_layout(8)
    store.check_layout(8)
    with pytest.raises(PipelineError, match="built with 8; set it back"):
        store.check_layout(4)


def test_a_writer_killed_while_replacing_leaves_the_old_file_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "head.json"
    files.replace(path, b"0" * 1000)
    program = textwrap.dedent(
        f"""
        from pathlib import Path
        from graphrag_pipeline.filesystem import files
        print("ready", flush=True)
        for i in range(10**9):
            files.replace(Path({str(path)!r}), str(i % 10).encode() * 1000)
        """
    )
    for _ in range(5):
        with started([sys.executable, "-c", program], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            os.kill(writer.pid, signal.SIGKILL)
        data = path.read_bytes()
        assert len(data) == 1000
        assert len(set(data)) == 1


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "tables").write_text("a file where a folder should be")
    with pytest.raises(PipelineError, match="cannot be written"):
        write(TableStore(tmp_path), "a")


def test_a_file_written_straight_to_disk_is_named_by_its_content_and_leaves_nothing_else(tmp_path: Path) -> None:
    numbers = pa.table({"a": [1, 2, 3]})
    name, n_bytes = put_parquet(tmp_path, numbers)
    data = parquet_bytes(numbers)
    assert (name, n_bytes) == (f"{files.content_hash(data)}.parquet", data.size)
    assert put_parquet(tmp_path, numbers) == (name, n_bytes)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == data


@pytest.mark.parametrize("lengths", [[0], [10, 0], [3, 4, 3], [9, 1], [1] * 10, [4, 4], [8]], ids=str)
def test_slices_of_any_length_give_the_file_of_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lengths: list[int]
) -> None:
    monkeypatch.setattr(table_store, "_ROW_GROUP", 4)
    whole = pa.table({"a": [f"text {n}" for n in range(sum(lengths))]}, pa.schema([("a", pa.string())]))
    ends = [sum(lengths[: n + 1]) for n in range(len(lengths))]
    slices = (whole.slice(end - length, length) for end, length in zip(ends, lengths, strict=True))
    assert put_parquet(tmp_path, slices) == put_parquet(tmp_path, whole)
    wide = whole.cast(pa.schema([("a", pa.large_string())]))
    assert put_parquet(tmp_path, wide) == put_parquet(tmp_path, whole)


def test_columns_that_are_not_wanted_are_not_read(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    head = write(store, "a", "b")
    every = store.read_head(head)
    assert store.read_head(head, without=("path",)) == every.drop_columns(["path"])


def test_a_file_whose_writing_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(file: BinaryIO) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(PipelineError, match="No space left on device"):
        files.write_new(tmp_path, ".parquet", fail)
    assert list(tmp_path.iterdir()) == []


def test_an_earlier_version_can_be_read_until_its_file_is_missing_or_damaged(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    old = write(store, "a")
    write(store, "a", "b")
    assert store.read_version(TABLE.name, "000", old.data_version) == rows("a")
    assert store.read_version(TABLE.name, "001", old.data_version) is None
    (path,) = store.paths(old)
    path.write_bytes(path.read_bytes()[:100])
    assert store.read_version(TABLE.name, "000", old.data_version) is None
    path.unlink()
    assert store.read_version(TABLE.name, "000", old.data_version) is None


def test_a_changed_file_of_a_partition_is_named_and_never_read(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    head = write(store, "a")
    [path] = store.paths(head)
    flip_bit(path, 4 * path.stat().st_size)
    for read in (store.read_head, lambda head: store.dataset([head])):
        with pytest.raises(DamagedFileError, match=re.escape(str(path))):
            read(head)
    assert store.read_version(head.table, head.partition, head.data_version) is None
    assert write(store, "a") == head
    assert store.read_head(head).num_rows


def test_a_head_with_a_changed_bit_does_not_count(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    head = write(store, "a")
    path = tmp_path / "heads" / head.table / f"{head.partition}.json"
    for bit in range(0, 8 * path.stat().st_size, 7):
        flip_bit(path, bit)
        assert store.head(head.table, head.partition) in (None, head)
        flip_bit(path, bit)


@pytest.mark.parametrize("content", [b"", b"\0" * 40, b'{"format": 1, "n_buckets": 3, "check": "0"}', b"[]"])
def test_a_damaged_layout_is_written_again_by_the_number_of_heads(tmp_path: Path, content: bytes) -> None:
    store = TableStore(tmp_path)
    store.check_layout(2)
    for bucket in ("000", "001"):
        store.write(STAGE_TABLES["corpus_manifest"], bucket, [], {}, {})
    (tmp_path / "tables" / "layout.json").write_bytes(content)
    with pytest.raises(PipelineError, match="was built with 2"):
        store.check_layout(3)
    store.check_layout(2)
    with pytest.raises(PipelineError, match="was built with 2"):
        TableStore(tmp_path).check_layout(3)
