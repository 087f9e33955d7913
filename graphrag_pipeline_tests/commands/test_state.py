"""Lines of `status` on what is left to do."""

from __future__ import annotations

import pytest

from graphrag_pipeline.commands.state import _render_failures


@pytest.mark.parametrize("reason", ["no record", "no record; the reply starts 'Roses are red'"])
def test_the_start_of_a_failed_reply_is_shown_once(reason: str) -> None:
    failure = {"stage": "extraction", "record": "unit 1", "reason": reason, "reply": "Roses are red"}
    [line] = _render_failures([failure])
    assert line == "failed extraction: unit 1: no record; the reply starts 'Roses are red'"
