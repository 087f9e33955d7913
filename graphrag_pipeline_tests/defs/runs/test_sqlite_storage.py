"""Dagster's SQLite files as this package opens them are those that Dagster makes."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest

from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.storage import dagster_home
from graphrag_pipeline_tests.support.roots import make_root

FILES = ("history/runs.db", "history/runs/index.db", "schedules/schedules.db")


@dg.asset
def made() -> dg.MaterializeResult:
    return dg.MaterializeResult(metadata={"rows": 3}, tags={"color": "blue"})


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Root]:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    yield make_root(tmp_path / "root")


def layout(path: Path) -> list[tuple[object, ...]]:
    """Return tables, indexes and the version of the schema in a database."""
    with closing(sqlite3.connect(path)) as database:
        tables = database.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()
        return [*tables, *database.execute("SELECT * FROM alembic_version"), *database.execute("PRAGMA journal_mode")]


def marks(path: Path) -> list[tuple[object, ...]]:
    """Return the indexes over runs or events that Dagster counts as built."""
    with closing(sqlite3.connect(path)) as database:
        return sorted(database.execute("SELECT name FROM secondary_indexes"))


def materialize(instance: dg.DagsterInstance) -> str:
    return dg.materialize([made], instance=instance).run_id


def test_the_files_are_those_that_dagster_makes(root: Root, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "theirs")) as theirs:
        their_run = materialize(theirs)
    with open_instance(root) as ours:
        our_run = materialize(ours)
        assert ours.all_instigator_state() == []
    home = root.path / "dagster"
    for file in FILES:
        assert layout(home / file) == layout(tmp_path / "theirs" / file)
    for file in FILES[:2]:
        assert marks(home / file) == marks(tmp_path / "theirs" / file)
    runs = "history/runs/{}.db"
    ours_alone, theirs_alone = home / runs.format(our_run), tmp_path / "theirs" / runs.format(their_run)
    assert layout(ours_alone) == layout(theirs_alone) and marks(ours_alone) == marks(theirs_alone) == []


def test_dagster_reads_what_was_written_and_goes_on(root: Root) -> None:
    with open_instance(root) as instance:
        first = materialize(instance)
    with dg.DagsterInstance.from_config(str(root.path / "dagster")) as plain:
        assert plain.get_run_by_id(first).is_success
        event = plain.get_latest_materialization_event(made.key)
        assert event.asset_materialization.tags["color"] == "blue"
        second = materialize(plain)
    with open_instance(root) as instance:
        assert instance.get_latest_materialization_event(made.key).run_id == second
        assert {run.run_id for run in instance.get_runs()} == {first, second}


def test_a_run_storage_has_its_own_id(tmp_path: Path) -> None:
    ids = set()
    for name in ("one", "two"):
        with open_instance(make_root(tmp_path / name)) as instance:
            ids.add(instance.run_storage.get_run_storage_id())
    assert len(ids) == 2


@pytest.mark.parametrize("has_links", [True, False])
def test_a_database_that_another_process_makes_at_the_same_time_is_kept(
    has_links: bool, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    link: Callable[..., None] = os.link
    runs = root.path / "dagster" / FILES[0]
    runs.unlink()

    def link_late(source: Path, target: Path) -> None:
        if not has_links:
            raise PermissionError(1, "no hard links")
        if target == runs:
            with dg.DagsterInstance.from_config(str(root.path / "dagster")) as other:
                materialize(other)
        link(source, target)

    monkeypatch.setattr(dagster_home.os, "link", link_late)
    with open_instance(root) as instance:
        ours = materialize(instance)
        assert instance.get_run_by_id(ours).is_success
        assert len(instance.get_runs()) == (2 if has_links else 1)


def test_an_error_leaves_the_storage_usable(root: Root) -> None:
    with open_instance(root) as instance:
        storage = instance.event_log_storage
        with pytest.raises(ZeroDivisionError), storage.index_connection() as connection:
            connection.exec_driver_sql("INSERT INTO secondary_indexes (name) VALUES ('lost')")
            1 / 0  # noqa: B018
        with storage.index_connection() as connection:
            names = connection.exec_driver_sql("SELECT name FROM secondary_indexes").scalars().all()
        assert "lost" not in names
        assert instance.get_run_by_id(materialize(instance)).is_success
