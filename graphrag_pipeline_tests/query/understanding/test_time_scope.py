"""Questions with a time phrase, over documents with dates: every method reads only the documents of that time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.query.search_result import SearchResult
from graphrag_pipeline.query.understanding.time_scope import read_time_scope
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
        result = index.search(TWO_WEEKS, method="global")
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
