"""Time phrases in questions: the days that they mean, and the rest of the question."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.query.question import is_overview
from graphrag_pipeline.query.understanding.time_forms import OVERVIEWS
from graphrag_pipeline.query.understanding.time_phrases import has_time_phrase, read_time_phrase

NOW = date(2026, 5, 31)  # a Sunday


@pytest.mark.parametrize(
    ("phrase", "start", "end"),
    [
        ("in the last two weeks", "2026-05-18", "2026-05-31"),
        ("in the past fortnight", "2026-05-18", "2026-05-31"),
        ("over the past 10 days", "2026-05-22", "2026-05-31"),
        ("during the last couple of months", "2026-04-01", "2026-05-31"),
        ("last 3 months", "2026-03-01", "2026-05-31"),
        ("last week", "2026-05-18", "2026-05-24"),
        ("last month", "2026-04-01", "2026-04-30"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("this week", "2026-05-25", "2026-05-31"),
        ("this quarter", "2026-04-01", "2026-05-31"),
        ("so far this year", "2026-01-01", "2026-05-31"),
        ("yesterday", "2026-05-30", "2026-05-30"),
        ("today", "2026-05-31", "2026-05-31"),
        ("three days ago", "2026-05-28", "2026-05-28"),
        ("a month ago", "2026-04-01", "2026-04-30"),
        ("since two weeks ago", "2026-05-17", "2026-05-31"),
        ("since March", "2026-03-01", "2026-05-31"),
        ("since August", "2025-08-01", "2026-05-31"),
        ("in March 2024", "2024-03-01", "2024-03-31"),
        ("in 2024", "2024-01-01", "2024-12-31"),
        ("on 12 March 2025", "2025-03-12", "2025-03-12"),
        ("on March 12th, 2025", "2025-03-12", "2025-03-12"),
        ("in 2024-02", "2024-02-01", "2024-02-29"),
        ("after June 2024", "2024-07-01", "2026-05-31"),
        ("before June 2024", None, "2024-05-31"),
        ("until 2024", None, "2024-12-31"),
        ("between March 2024 and May 2024", "2024-03-01", "2024-05-31"),
        ("from 2020 to 2023", "2020-01-01", "2023-12-31"),
        ("recently", "2026-05-02", "2026-05-31"),
        ("in den letzten zwei Wochen", "2026-05-18", "2026-05-31"),
        ("letzten Monat", "2026-04-01", "2026-04-30"),
        ("seit März 2024", "2024-03-01", "2026-05-31"),
        ("gestern", "2026-05-30", "2026-05-30"),
        ("ces deux dernières semaines", "2026-05-18", "2026-05-31"),
        ("depuis mars", "2026-03-01", "2026-05-31"),
        ("la semaine dernière", "2026-05-18", "2026-05-24"),
        ("en las últimas dos semanas", "2026-05-18", "2026-05-31"),
        ("desde marzo de 2024", "2024-03-01", "2026-05-31"),
        ("el año pasado", "2025-01-01", "2025-12-31"),
        ("最近两周", "2026-05-18", "2026-05-31"),
        ("过去三个月", "2026-03-01", "2026-05-31"),
        ("2024年3月以来", "2024-03-01", "2026-05-31"),
        ("去年", "2025-01-01", "2025-12-31"),
    ],
)
def test_a_phrase_means_days(phrase: str, start: str | None, end: str) -> None:
    found = read_time_phrase(f"Brantwick {phrase}?", NOW)
    assert found is not None and found.rest == "Brantwick?" and not found.is_all
    assert (found.start and found.start.isoformat(), found.end and found.end.isoformat()) == (start, end)


@pytest.mark.parametrize(
    "question",
    [
        "Who directed Yesterday?", "Who wrote 1984?", "What may happen in London?", "Did they march in Selma?",
        "How old was he in the last year of his life?", "Who came last?", "What happened on 30 February?",
        "Which team won in the past?", "What happened between 2024 and 2020?", "Wer war der letzte Kaiser?", "",
    ],
)  # fmt: skip
def test_names_and_numbers_are_not_time_phrases(question: str) -> None:
    assert read_time_phrase(question, NOW) is None


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("What happened in the last two weeks in Brantwick?", "What happened in Brantwick?"),
        ("What did Bob do yesterday?", "What did Bob do?"),
        ("In 2024, who led Nordwerk?", "who led Nordwerk?"),
        ("What is the latest news about Piet Maas?", "What is about Piet Maas?"),
        ("What happened in the past fortnight?", OVERVIEWS["en"]),
        ("Catch me up on the last two weeks", OVERVIEWS["en"]),
        ("What's new since March?", OVERVIEWS["en"]),
        ("last month's events", OVERVIEWS["en"]),
        ("Was ist in den letzten zwei Wochen passiert?", OVERVIEWS["de"]),
        ("Que s'est-il passé depuis mars ?", OVERVIEWS["fr"]),
        ("¿Qué pasó ayer?", OVERVIEWS["es"]),
        ("最近两周发生了什么？", OVERVIEWS["zh"]),
    ],
)
def test_the_rest_is_searched_for_or_an_overview_if_nothing_is_left(question: str, rest: str) -> None:
    found = read_time_phrase(question, NOW)
    assert found is not None and found.rest == rest
    assert found.is_all == is_overview(rest)


@given(
    st.sampled_from(["the last {} {}", "{} {} ago", "since {} {} ago", "last {} {}"]),
    st.integers(0, 999),
    st.sampled_from(["days", "weeks", "months", "quarters", "years", "decades"]),
    st.dates(),
)
def test_days_are_in_order_and_end_by_now_or_there_is_no_phrase(form: str, n: int, unit: str, now: date) -> None:
    question = f"What happened {form.format(n, unit)}?"
    found = read_time_phrase(question, now)
    assert has_time_phrase(question)
    if found is not None:
        assert found.start and found.end and found.start <= found.end


@given(st.text(max_size=80), st.dates())
def test_any_question_is_read(question: str, now: date) -> None:
    read_time_phrase(question, now)
