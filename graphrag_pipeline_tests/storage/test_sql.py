"""A statement of `sql` has limits of time and memory."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.storage.sql import run_sql
from graphrag_pipeline_tests.support.corpora.exported_index import freeze_hard_index
from graphrag_pipeline_tests.support.roots import built_root


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    yield freeze_hard_index(tmp_path_factory.mktemp("sql") / "root")


def test_a_statement_that_never_ends_is_stopped(snapshot: Snapshot) -> None:
    started = time.monotonic()
    with pytest.raises(PipelineError, match=r"stopped after storage\.sql_max_s = 0\.3 seconds; add conditions"):
        run_sql(snapshot, "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b", max_s=0.3)
    assert time.monotonic() - started < 30


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT list(range) FROM range(100000000)",  # in DuckDB
        "SELECT range, repeat('x', 1000) FROM range(10000000)",  # in the result
        "SELECT repeat('x', 5000000) FROM range(1000)",  # in one batch of the result
        "SELECT repeat('x', 1000000000) || repeat('y', 1000000000) FROM range(100)",  # in one value
        "SELECT range(100000000)",
    ],
)
def test_a_statement_that_needs_much_memory_is_stopped(snapshot: Snapshot, statement: str) -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with pytest.raises(PipelineError, match=r"needs more memory than storage\.sql_max_memory_mb = 50; add conditions"):
        run_sql(snapshot, statement, max_memory_mb=50)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_an_error_while_rows_are_read_is_that_of_the_statement(snapshot: Snapshot) -> None:
    with pytest.raises(PipelineError, match="Could not convert string 'x'"):
        run_sql(snapshot, "SELECT CAST(if(range = 9999, 'x', '1') AS INTEGER) FROM range(10000)")


def test_the_limits_cannot_be_raised_by_a_statement(snapshot: Snapshot) -> None:
    with pytest.raises(PipelineError, match="SET is not possible"):
        run_sql(snapshot, "SET memory_limit = '100GB'")


@pytest.fixture
def indexed(tmp_path: Path) -> Root:
    root = built_root(tmp_path / "root", stages=ALL_STAGES)
    return root


@pytest.mark.parametrize("table", ["entities", "stage_entity_mentions"])
@pytest.mark.parametrize("damage", ["no footer", "no bytes", "a changed page"])
def test_a_damaged_file_matters_to_the_statements_that_read_it(table: str, damage: str, indexed: Root) -> None:
    folder = indexed.path / ("snapshots/tables/entities" if table == "entities" else "tables/entity_mentions")
    path = max(folder.rglob("*.parquet"), key=lambda file: file.stat().st_size)
    content = path.read_bytes()
    changes = {"no footer": content[:-20], "no bytes": b"", "a changed page": b"PAR1" + b"\xff" * 400 + content[404:]}
    path.write_bytes(changes[damage])
    snapshot = indexed.open_snapshot()
    assert run_sql(snapshot, "SELECT count(*) AS n FROM documents").to_pylist() == [{"n": 3}]
    assert table in run_sql(snapshot, "SHOW TABLES")["name"].to_pylist()
    with pytest.raises(NoSnapshotError, match=rf"{path.name}.*damaged.*verify --repair"):
        run_sql(snapshot, f"SELECT d.id, t.* FROM documents d, {table} t")


def test_a_stage_table_whose_file_is_missing_is_named_by_the_statements_that_read_it(indexed: Root) -> None:
    path = next((indexed.path / "tables/entity_mentions").rglob("*.parquet"))
    path.unlink()
    snapshot = indexed.open_snapshot()
    assert run_sql(snapshot, "SELECT count(*) AS n FROM stage_documents").to_pylist() == [{"n": 3}]
    with pytest.raises(NoSnapshotError, match=rf"{path.name}.*no such file.*verify --repair"):
        run_sql(snapshot, "SELECT count(*) FROM stage_entity_mentions")
