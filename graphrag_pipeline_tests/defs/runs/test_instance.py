"""Dagster's storage of a root: its settings, opened once for an index run, and read by Dagster as its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline.defs.runs.instance import dagster_home, keeping_instances, open_instance
from graphrag_pipeline.storage.dagster_home import DAGSTER_YAML
from graphrag_pipeline_tests.support.roots import make_root


@pytest.fixture(autouse=True)
def _own_dagster_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


def test_an_instance_is_opened_once_while_instances_are_kept(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    with keeping_instances():
        with open_instance(root) as first:
            pass
        with open_instance(root) as second:
            assert second is first
            assert second.get_runs_count() == 0, "it is still open"
    with open_instance(root) as third:
        assert third is not first


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", DAGSTER_YAML),
        ("nux: {enabled: true}\n", "nux: {enabled: true}\n"),
    ],
)
def test_a_home_gets_our_settings_unless_the_user_wrote_some(tmp_path: Path, before: str, after: str) -> None:
    root = make_root(tmp_path)
    settings = root.path / "dagster" / "dagster.yaml"
    settings.unlink(missing_ok=True)
    if before:
        settings.parent.mkdir(exist_ok=True)
        settings.write_text(before)
    assert dagster_home(root) == settings.parent and settings.read_text() == after
    assert "INFO" in DAGSTER_YAML


def test_a_queued_run_starts_within_a_second(tmp_path: Path) -> None:
    with open_instance(make_root(tmp_path)) as instance:
        assert instance.run_coordinator.dequeue_interval_seconds == 1
