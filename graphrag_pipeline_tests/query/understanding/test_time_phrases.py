"""Time phrases in questions: the days that they mean, and the rest of the question."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import dagster as dg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.query.question import is_overview
from graphrag_pipeline.query.search_result import SearchResult
from graphrag_pipeline.query.understanding import time_phrases
from graphrag_pipeline.query.understanding.time_phrases import (
    OVERVIEWS,
    has_time_phrase,
    read_time_phrase,
    read_time_scope,
)
from graphrag_pipeline_tests.model_server import ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model
from graphrag_pipeline_tests.support.roots import build_tables, make_root, put

NEWS = [
    ("2025-11-02", "Brantwick opened a new harbour. Mayor Lund cut the ribbon in Brantwick. Anna Keller praised the "
     "harbour of Brantwick."),
    ("2026-03-20", "The council of Brantwick raised the harbour fee. Mayor Lund defended the fee. Piet Maas protested "
     "against Mayor Lund."),
    ("2026-04-11", "Anna Keller founded Sudwind with Piet Maas in Oslo. Sudwind builds turbines. Piet Maas invested in "
     "Sudwind."),
    ("2026-05-20", "A storm flooded the harbour of Brantwick. Mayor Lund closed the harbour. Olga Brandt led the "
     "rescue in Brantwick."),
    ("2026-05-29", "Nordwerk sued Sudwind over a patent in Oslo. Anna Keller rejected the claim of Nordwerk. Olga "
     "Brandt joined Nordwerk."),
]  # fmt: skip
FORTNIGHT = ["creation_date>=2026-05-16", "creation_date<=2026-05-29"]
TWO_WEEKS = "What happened in the last two weeks in Brantwick?"


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphIndex]:
    root = make_root(tmp_path_factory.mktemp("dated") / "root", {})
    rows = [
        {"id": str(n), "title": f"Item {n}", "creation_date": day, "text": text} for n, (day, text) in enumerate(NEWS)
    ]
    put(root.path, "news.jsonl", "\n".join(map(json.dumps, rows)))
    build_tables(root, tuple(ALL_STAGES))
    with GraphIndex.open(root.path) as index:
        yield index


def titles(result: SearchResult) -> set[str]:
    return {citation.document_title for citation in result.citations}


@pytest.mark.parametrize(
    "question",
    [
        "Catch me up on the last two weeks",
        "Catch me up on the last two weeks of updates.",
        "Summarize the last two weeks of news",
        "What happened in the last two weeks of work?",
        "What happened in the past fortnight?",
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_a_question_about_a_time_alone_gets_an_overview_of_its_documents(
    dated: GraphIndex, method: str, question: str
) -> None:
    result = dated.search(question, method=method)
    assert titles(result) == {"Item 3", "Item 4"}, result.answer
    account = result.selection["time"]
    assert (account["from"], account["to"], account["now"], account["documents"]) == (
        "2026-05-16",
        "2026-05-29",
        "2026-05-29",
        2,
    )
    assert result.selection["filters"] == FORTNIGHT and result.question == question
    assert f"Time: “{account['phrase']}” is 2026-05-16 to 2026-05-29" in result.answer


@pytest.mark.parametrize("method", METHODS)
def test_a_question_about_an_entity_at_a_time_is_answered_from_that_time(dated: GraphIndex, method: str) -> None:
    result = dated.search(TWO_WEEKS, method=method)
    assert titles(result) == {"Item 3"} and "flooded" in result.answer
    march = dated.search("What did Mayor Lund do in March?", method=method)
    assert titles(march) == {"Item 1"} and "defended the fee" in march.answer
    assert {unit.document_title for unit in march.context.text_units} <= {"Item 1"}


def test_now_may_be_set(dated: GraphIndex) -> None:
    result = dated.search("What happened in the last two weeks?", method="basic", now="2026-04-15")
    assert titles(result) == {"Item 2"} and result.selection["time"]["now"] == "2026-04-15"
    with pytest.raises(PipelineError, match="now: "):
        dated.search("What happened last week?", now="soon")


def test_a_time_and_filters_are_anded(dated: GraphIndex) -> None:
    result = dated.search("What happened since March?", method="basic", filters=["title~item 1"])
    assert titles(result) == {"Item 1"}
    assert result.selection["filters"] == ["title~item 1", "creation_date>=2026-03-01", "creation_date<=2026-05-29"]


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("Where was Mayor Lund in January?", "no document has a date of 2026-01-01 to 2026-01-31"),
        ("What did Piet Maas do yesterday?", "no document has a date of 2026-05-28"),
        ("What did Piet Maas do in the last two weeks?", "contains the name"),
    ],
)
def test_a_time_without_documents_or_without_the_name_is_dropped_and_the_answer_says_so(
    dated: GraphIndex, question: str, why: str
) -> None:
    result = dated.search(question)
    assert result.citations and "filters" not in result.selection
    assert why in result.selection["time"]["dropped"] and why in result.answer
    assert result.answer.endswith("all documents were read.")


def test_a_date_outside_all_documents_is_what_a_question_is_about(dated: GraphIndex) -> None:
    scope = read_time_scope(dated, "What did Anna Keller found in 1998?")
    assert scope.question == "What did Anna Keller found in 1998?" and scope.note == ""
    assert "dropped" in scope.account["time"]
    assert "all documents were read" in read_time_scope(dated, "What happened in 1998?").note


def test_latest_news_goes_back_until_it_contains_the_named_entity(dated: GraphIndex) -> None:
    storm = dated.search("What is the latest news about Brantwick?")
    assert titles(storm) == {"Item 3"} and storm.selection["time"]["from"] == "2026-04-30"
    older = dated.search("What is the latest news about Piet Maas?")
    assert older.selection["time"]["from"] == "2025-05-30" and "**Piet Maas**" in older.answer


@pytest.mark.parametrize("question", ["Who haunted Scrooge last year?", "Catch me up on the last two weeks"])
def test_without_dates_a_question_is_not_changed(small: GraphIndex, question: str) -> None:
    scope = read_time_scope(small, question)
    assert scope.question == question and scope.filters == ()
    assert scope.account["time"]["dropped"] == "no document has a date"


def test_a_stream_ends_with_the_note(dated: GraphIndex) -> None:
    *pieces, result = dated.stream(TWO_WEEKS)
    assert isinstance(result, SearchResult) and "".join(map(str, pieces)) == result.answer
    assert result.answer.endswith("read: 2 documents.")


@pytest.mark.parametrize("method", METHODS)
def test_no_model_reads_documents_of_another_time(dated: GraphIndex, tmp_path: Path, method: str) -> None:
    with running_model_server() as server:
        index = open_with_model(dated, tmp_path, server, rating={"engine": "model"})
        result = index.search("What happened in the last two weeks?", method=method)
    sent = json.dumps([call.body for call in server.calls])
    assert "Nordwerk" in sent and not any(word in sent for word in ("ribbon", "protested", "invested"))
    assert "Time: “the last two weeks”" in result.answer


def test_where_a_time_leaves_no_relevant_report_a_model_reads_its_texts(dated: GraphIndex, tmp_path: Path) -> None:
    def rate(request: ReceivedRequest) -> object:
        return {"reason": "no", "rating": 0} if request.kind == "rating" else None

    with running_model_server(rate) as server:
        index = open_with_model(dated, tmp_path, server, rating={"engine": "model"})
        result = index.search(TWO_WEEKS, method="global", small_reports_per_call=1)
        n_maps, n_answers = (server.count(kind) for kind in ("map", "answer"))
    used = result.selection["options_used"]
    assert result.selection["kept"] == n_maps == 0 and n_answers == 1
    assert used == {"filtered_texts": {"text_units": len(result.context.text_units)}} and result.context.text_units


def test_a_query_job_reads_the_same_documents_and_keeps_the_account(dated: GraphIndex) -> None:
    root = dated._models_of_root
    job = build_definitions(root).resolve_job_def("global_search_job")
    with open_instance(root) as instance:
        done = job.execute_in_process(instance=instance, run_config={"question": TWO_WEEKS})
        kept = instance.get_latest_materialization_event(dg.AssetKey("answers"))
    result = dated.search(TWO_WEEKS, method="global")
    assert done.output_for_node("reduce_points") == {
        "question": TWO_WEEKS, "snapshot": result.snapshot, "answer": result.answer,
    }  # fmt: skip
    assert kept and kept.asset_materialization
    account = {name: value.value for name, value in kept.asset_materialization.metadata.items()}
    assert account["tokens of context and answer without a model"] == result.usage.to_dict()["tokens"] > 0
    assert (account["rated"], account["kept"], account["pruned"]) == tuple(
        result.selection[n] for n in ("rated", "kept", "pruned")
    )
    assert account["selection"]["time"] == result.selection["time"] and account["filters"] == " and ".join(FORTNIGHT)


# ------------------------------------------------------------------------------------------- filters without reports


@pytest.mark.parametrize("method", ["global", "drift"])
def test_where_filters_leave_too_few_reports_an_overview_reads_the_texts(dated: GraphIndex, method: str) -> None:
    result = dated.search("What are the main events?", method=method, filters=["title=item 1,item 2"])
    assert titles(result) == {"Item 1", "Item 2"} and len(result.context.text_units) == 2
    assert "wholly within title=item 1,item 2: the texts themselves were read." in result.answer
    whole = dated.search("What are the main events?", method=method, filters=["title~item"])
    assert whole.context.reports and "wholly within" not in whole.answer


@pytest.mark.parametrize("method", ["global", "drift"])
def test_a_model_reads_the_texts_too_where_filters_leave_no_report(
    dated: GraphIndex, tmp_path: Path, method: str
) -> None:
    with running_model_server() as server:
        index = open_with_model(dated, tmp_path, server, rating={"engine": "model"})
        result = index.search("What are the main events?", method=method, filters=["title=item 1,item 2"])
    sent = json.dumps([call.body for call in server.calls])
    assert "protested against Mayor Lund" in sent and "founded Sudwind" in sent
    assert not {call.kind for call in server.calls} & {"rating", "map"}
    assert result.answering["engine"] == "model" and "the texts themselves were read." in result.answer


WORDS = """
the these last past previous this current ago since in on during between and from to until before after
vor letzten diese im seit dernières ce depuis en últimos la pasada este desde 最近 过去 上 今 在 的 2024 3 1st
"""
PIECES = sorted(
    {
        *time_phrases.UNIT_OF,
        *time_phrases.NUMBER_OF,
        *time_phrases.MONTH_OF,
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
        for language, kind, written in time_phrases._FORMS
        for match in re.finditer(written, question, re.IGNORECASE)
    ]
    assert [(language, kind, match.span()) for language, kind, match in time_phrases.match_forms(question)] == tried


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
