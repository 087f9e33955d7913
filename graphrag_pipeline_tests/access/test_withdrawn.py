"""A view is refused if it holds a document that its root has published and that does not pass."""

from __future__ import annotations

import json

import pytest

from graphrag_pipeline.access.withdrawn import has_withdrawn
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
