"""A new Dagster home has its databases before Dagster opens it, and a damaged one is repaired or named."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest

from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.storage.dagster_home import DATABASES, prepare_home
from graphrag_pipeline_tests.support.roots import make_root
from graphrag_pipeline_tests.support.thoroughness import repetitions

OPEN = "import dagster as dg; i = dg.DagsterInstance.get(); i.get_runs_count(); i.all_asset_keys()"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    return make_root(tmp_path / "root")


def revisions(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return [revision for (revision,) in database.execute("SELECT version_num FROM alembic_version")]


def execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)


def test_processes_of_dagster_open_a_new_home_at_once(tmp_path: Path) -> None:
    n_processes = repetitions(2, thorough=4)
    for number in range(repetitions(1, 3)):
        home = make_root(tmp_path / str(number)).path / "dagster"
        command = [sys.executable, "-c", OPEN]
        environment = {**os.environ, "DAGSTER_HOME": str(home)}
        started = [
            subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(n_processes)
        ]
        errors = [child.communicate()[1] for child in started]
        assert [child.returncode for child in started] == [0] * n_processes, errors
        assert all(len(revisions(home / place)) == 1 for place in DATABASES.values())


@pytest.mark.parametrize("name", DATABASES)
def test_a_database_with_two_revisions_keeps_its_records(
    name: str, root: Root, caplog: pytest.LogCaptureFixture
) -> None:
    """As processes of Dagster leave it that made it at once."""
    with open_instance(root) as instance:
        run = instance.create_run_for_job(dg.JobDefinition(graph_def=dg.GraphDefinition(name="one"))).run_id
        instance.report_runless_asset_event(dg.AssetMaterialization("thing"))
    damaged = root.path / "dagster" / DATABASES[name]
    [revision] = revisions(damaged)
    execute(damaged, "INSERT INTO alembic_version VALUES ('5771160a95ad')")
    with open_instance(root) as instance:
        assert instance.has_run(run)
        assert instance.get_latest_materialization_event(dg.AssetKey("thing"))
        assert instance.all_instigator_state() == []
    assert revisions(damaged) == [revision]
    assert [
        record.message for record in caplog.records if str(damaged) in record.message and "repaired" in record.message
    ]


@pytest.mark.parametrize("damage", ["it is not a database", "its revisions are unknown"])
@pytest.mark.parametrize("name", DATABASES)
def test_a_database_that_cannot_be_read_is_moved_aside(
    name: str, damage: str, root: Root, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = root.path / "dagster" / DATABASES[name]
    if damage == "it is not a database":
        damaged.write_bytes(b"\0" * 8192)
    else:
        execute(damaged, "INSERT INTO alembic_version VALUES ('unknown')")
    content = damaged.read_bytes()
    with open_instance(root) as instance:
        assert instance.get_runs_count() == 0 and not instance.all_asset_keys()
        assert instance.all_instigator_state() == []
    [aside] = damaged.parent.glob(f"{damaged.name}.damaged-*")
    assert aside.read_bytes() == content and aside.name in caplog.text
    assert len(revisions(damaged)) == 1


def test_a_home_that_cannot_be_repaired_is_named(root: Root) -> None:
    home = root.path / "dagster"
    damaged = home / DATABASES["run_storage"]
    damaged.unlink()
    (home / "databases.lock").unlink(missing_ok=True)
    (home / "databases.lock").mkdir()
    with pytest.raises(PipelineError, match=r"databases\.lock"), open_instance(root):
        pass


def test_a_database_that_the_settings_put_elsewhere_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text("storage: {postgres: {postgres_url: x}}\n")
    prepare_home(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["dagster.yaml"]
