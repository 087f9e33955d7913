"""Lines of `status` on what is left to do."""

from __future__ import annotations

import pytest

from graphrag_pipeline.commands.state import _render_failures


@pytest.mark.parametrize("reason", ["no record", "no record; the reply starts 'Roses are red'"])
def test_the_start_of_a_failed_reply_is_shown_once(reason: str) -> None:
    failure = {"stage": "graph", "place": "", "record": "Ada", "reason": reason, "reply": "Roses are red"}
    [line, _] = _render_failures([failure])
    assert line == "failed graph: Ada: no record; the reply starts 'Roses are red'"


def test_a_failed_text_unit_is_named_by_its_place_and_with_what_comes_next() -> None:
    place = "stave_1.txt, characters 0 to 5,120"
    failure = {"stage": "extracted_graph", "place": place, "record": "96b9e38e27", "reason": "refused", "reply": ""}
    assert _render_failures([failure]) == [
        "failed extracted_graph: stave_1.txt, characters 0 to 5,120 (96b9e38e): refused",
        "the next `index` asks for these records again",
    ]
    assert _render_failures([]) == []
