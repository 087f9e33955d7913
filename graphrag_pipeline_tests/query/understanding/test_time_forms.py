"""Forms of time phrases: leaving out the long patterns that cannot match changes no match."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from graphrag_pipeline.query.understanding import time_forms

WORDS = """
the these last past previous this current ago since in on during between and from to until before after
vor letzten diese im seit dernières ce depuis en últimos la pasada este desde 最近 过去 上 今 在 的 2024 3 1st
"""
PIECES = sorted(
    {
        *time_forms.UNIT_OF,
        *time_forms.NUMBER_OF,
        *time_forms.MONTH_OF,
        *WORDS.split(),
        *("2024-05-01", "May", "the year", ",", "?", "'s", "of", "Scrooge", "老人"),
    }
)


@given(st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(("", " ", "  "))), min_size=1, max_size=6))
@example([("past", " "), ("two", ""), ("weeks", "")])
@example([("过去", ""), ("两", ""), ("周", ""), ("的", "")])
def test_every_phrase_is_matched_as_if_all_patterns_were_tried(pieces: list[tuple[str, str]]) -> None:
    question = "".join(piece + gap for piece, gap in pieces)
    tried = [
        (language, kind, match.span())
        for language, kind, written in time_forms._FORMS
        for match in re.finditer(written, question, re.IGNORECASE)
    ]
    assert [(language, kind, match.span()) for language, kind, match in time_forms.match_forms(question)] == tried
