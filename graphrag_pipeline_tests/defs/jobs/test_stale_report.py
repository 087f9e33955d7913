"""The job that compares files with their hashes and repairs them."""

from __future__ import annotations

import dagster as dg
import pytest

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.pipeline.root import ROOT_VARIABLE, Root
from graphrag_pipeline.pipeline.verification import verify_root
from graphrag_pipeline_tests.support.damage import index_files, zero


def test_the_job_repairs_damaged_files_and_shows_them(indexed_root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROOT_VARIABLE, str(indexed_root.path))
    path = index_files(indexed_root.path, ["snapshots/adjacency"])[0]
    zero(path)
    definitions = build_definitions(indexed_root)
    with open_instance(indexed_root) as instance:
        done = definitions.resolve_job_def("verify_files").execute_in_process(instance=instance)
    [shown] = [event.step_output_data.metadata for event in done.all_node_events if event.is_successful_output]
    assert shown["damaged"].value == 1
    assert str(path.relative_to(indexed_root.path)) in str(shown["damaged files"].value)
    assert verify_root(indexed_root).findings == ()


def test_its_schedule_is_off_until_the_settings_turn_it_on(indexed_root: Root) -> None:
    schedule = build_definitions(indexed_root).resolve_schedule_def("verify_schedule")
    assert (schedule.cron_schedule, schedule.default_status) == ("0 4 * * 0", dg.DefaultScheduleStatus.STOPPED)
