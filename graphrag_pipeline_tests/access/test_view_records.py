"""The record of a view: which snapshots belong together, and how long its making takes."""

from __future__ import annotations

import pytest

from graphrag_pipeline.access.view_guard import ViewGuard
from graphrag_pipeline.access.view_records import ViewRecord, note_end, note_start, read_record
from graphrag_pipeline.access.view_settings import find_view

ROOT, EARLIER, VIEW, OTHER = ("a" * 16, "b" * 16, "c" * 16, "d" * 16)
OPEN, NEW = ("level=open",), ("year>=2020",)


@pytest.mark.parametrize(
    ("seconds", "started", "left"),
    [
        (20.0, 0.0, 20.0),
        (20.0, 995.0, 15.0),
        (20.0, 960.0, 10.0),
        (20.0, 100.0, 20.0),
        (0.0, 0.0, 1.0),
        (20.0, 2e3, 20),
    ],
)
def test_the_time_left_is_estimated_from_the_last_making(seconds, started, left):
    assert ViewRecord({}, seconds, started).seconds_left(1000.0) == left


def test_a_snapshot_of_another_reader_means_the_one_that_was_made_of_the_same_publication(tmp_path):
    for filters, made in ((OPEN, VIEW), (NEW, OTHER)):
        note_start(find_view(tmp_path, filters))
        note_end(find_view(tmp_path, filters), EARLIER, "e" * 16, 4.0)
        note_end(find_view(tmp_path, filters), ROOT, made, None)
    assert read_record(find_view(tmp_path, OPEN)).seconds == 4.0
    guard = ViewGuard(tmp_path)
    assert guard.resolve(OPEN, ROOT, VIEW) == guard.resolve(OPEN, OTHER, VIEW) == VIEW
    assert guard.resolve((), VIEW, ROOT) == guard.resolve((), OTHER, ROOT) == ROOT
    assert guard.resolve(OPEN, EARLIER, VIEW) == "e" * 16  # no longer kept, so it is not found
    for asked in (ROOT[:8], "f" * 16, "../../x"):
        assert guard.resolve(OPEN, asked, VIEW) == guard.resolve((), asked, ROOT) == asked


def test_a_damaged_record_counts_as_none(tmp_path):
    (tmp_path / "view.json").write_text("{")
    assert read_record(tmp_path) == ViewRecord()
    note_end(tmp_path, ROOT, VIEW, 2.0)
    assert read_record(tmp_path) == ViewRecord({ROOT: VIEW}, 2.0)
