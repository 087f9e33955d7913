"""A view is refused if it holds a document that its root has published and that does not pass."""

from __future__ import annotations

import json

import pytest

from graphrag_pipeline.access.view_guard import ViewGuard, ViewRecord, has_withdrawn, note_end, note_start, read_record
from graphrag_pipeline.access.view_settings import find_view
from graphrag_pipeline.tables import CONTRACT_TABLES

OPEN = ("level=open",)


def _documents(*rows: tuple[str, str, str, str]):
    """Return the contract table of documents with (path, record, text, level)."""
    made = [
        {
            "id": f"{path}{record}",
            "human_readable_id": number,
            "title": record,
            "text": text,
            "text_unit_ids": [],
            "path": path,
            "record": record,
            "creation_date": None,
            "metadata": json.dumps({"level": level}),
        }
        for number, (path, record, text, level) in enumerate(rows)
    ]
    return CONTRACT_TABLES["documents"].from_rows(made)


A = ("a.jsonl", "1", "A harbour.", "open")
B = ("a.jsonl", "2", "A mill.", "open")
ROW = ("b.csv", "#4", "A tram.", "open")
IN_VIEW = ("b.csv", "#1", "A tram.", "open")
HIDDEN_ROW = ("b.csv", "#1", "A vault.", "secret")


@pytest.mark.parametrize(
    ("published", "view", "is_withdrawn"),
    [
        ((A, B), (A, B), False),
        ((A,), (A, B), False),  # deleted
        (((*A[:2], "A longer harbour.", "open"), B), (A, B), False),  # edited
        ((A, (*B[:3], "secret")), (A, B), True),
        ((A, ("a.jsonl", "2", "A new mill.", "secret")), (A, B), True),  # edited, too
        ((A, ("vault/a.jsonl", "2", "A mill.", "secret")), (A, B), True),  # moved
        ((A, ("vault/a.jsonl", "2", "A mill.", "secret"), ("c.jsonl", "3", "A mill.", "open")), (A, B), False),
        ((HIDDEN_ROW, ROW), (IN_VIEW,), False),  # the number of a hidden row, but another row
        ((HIDDEN_ROW, (*ROW[:3], "secret")), (IN_VIEW,), True),
        ((HIDDEN_ROW, ("b.csv", "#4", "A new tram.", "secret")), (IN_VIEW,), True),
        ((A, ("b.csv", "#4", "A new tram.", "open")), (A, IN_VIEW), False),
        ((), (A,), False),
    ],
)
def test_only_a_document_that_may_not_be_read_any_more_is_withdrawn(published, view, is_withdrawn):
    assert has_withdrawn(_documents(*published), _documents(*view), OPEN) is is_withdrawn


ROOT, EARLIER, VIEW, OTHER = ("a" * 16, "b" * 16, "c" * 16, "d" * 16)
OPEN_FILTERS, NEW = ("level=open",), ("year>=2020",)


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
    for filters, made in ((OPEN_FILTERS, VIEW), (NEW, OTHER)):
        note_start(find_view(tmp_path, filters))
        note_end(find_view(tmp_path, filters), EARLIER, "e" * 16, 4.0)
        note_end(find_view(tmp_path, filters), ROOT, made, None)
    assert read_record(find_view(tmp_path, OPEN_FILTERS)).seconds == 4.0
    guard = ViewGuard(tmp_path)
    assert guard.resolve(OPEN_FILTERS, ROOT, VIEW) == guard.resolve(OPEN_FILTERS, OTHER, VIEW) == VIEW
    assert guard.resolve((), VIEW, ROOT) == guard.resolve((), OTHER, ROOT) == ROOT
    assert guard.resolve(OPEN_FILTERS, EARLIER, VIEW) == "e" * 16  # no longer kept, so it is not found
    for asked in (ROOT[:8], "f" * 16, "../../x"):
        assert guard.resolve(OPEN_FILTERS, asked, VIEW) == guard.resolve((), asked, ROOT) == asked


def test_a_damaged_record_counts_as_none(tmp_path):
    (tmp_path / "view.json").write_text("{")
    assert read_record(tmp_path) == ViewRecord()
    note_end(tmp_path, ROOT, VIEW, 2.0)
    assert read_record(tmp_path) == ViewRecord({ROOT: VIEW}, 2.0)
