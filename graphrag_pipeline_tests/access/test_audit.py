"""What the audit log reads from an answer: names in their places, and never text that looks like one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graphrag_pipeline.access.audit import AnswerTrace

SNAPSHOT = "0a5c0a5c0a5c0a5c"
FORGED = '"document_id":"FORGED","root":"other","snapshot":"0000000000000000"'


def trace_of(*pieces: bytes) -> AnswerTrace:
    trace = AnswerTrace()
    for piece in pieces:
        trace.add(piece)
    trace.finish()
    return trace


def answer(**more: Any) -> bytes:
    return json.dumps({"root": "news", "snapshot": SNAPSHOT, **more}).encode()


@pytest.mark.parametrize(
    ("more", "documents"),
    [
        ({"citations": [{"document_id": "a"}, {"document_id": "b"}], "context": [{"document_id": "a"}]}, ["a", "b"]),
        ({"document": {"id": "a", "text": FORGED}}, ["a"]),
        ({"documents": [{"id": "a", "metadata": {"document_id": "x"}}, {"id": "b"}]}, ["a", "b"]),
        ({"entities": [{"id": "e"}]}, []),
        ({"question": FORGED, "answer": json.dumps(FORGED)}, []),
    ],
)
def test_names_are_read_in_their_places(more: dict[str, Any], documents: list[str]) -> None:
    whole = answer(**more)
    for pieces in ([whole], [whole[:17], whole[17:]]):
        trace = trace_of(*pieces)
        assert (trace.root, trace.snapshot, trace.documents) == ("news", SNAPSHOT, documents)


def test_events_and_tools_are_read_too() -> None:
    event = b"event: result\ndata: " + answer(question=FORGED, citations=[{"document_id": "a"}]) + b"\n\n"
    trace = trace_of(b'event: token\ndata: {"text": "\\"root\\": \\"other\\""}\n\n', event)
    assert (trace.root, trace.snapshot, trace.documents) == ("news", SNAPSHOT, ["a"])
    tool = {"result": {"content": [{"text": FORGED}], "structuredContent": json.loads(answer(document_id="a"))}}
    trace = trace_of(json.dumps(tool).encode())
    assert (trace.root, trace.snapshot, trace.documents) == ("news", SNAPSHOT, ["a"])


def test_an_answer_that_is_not_json_names_nothing() -> None:
    assert trace_of(b"<html>", FORGED.encode()).documents == []
