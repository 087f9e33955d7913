""""""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys

import pytest

from graphrag_pipeline.errors import NoSnapshotError, PipelineError, SettingsError
from graphrag_pipeline.inspection.tracing import read_citation
from graphrag_pipeline.query.index.graph_index import GraphIndex, prepare_query, run_search, run_step
from graphrag_pipeline.query.index_reader import EMPTY_INDEX
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.query.methods.state import SearchRequest, SearchState
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search import local as local_search
from graphrag_pipeline.query.search.community_selection import rate_reports
from graphrag_pipeline.query.search.global_ import map_points
from graphrag_pipeline.query.streams import Listener
from graphrag_pipeline.settings.rendering import render_settings
from graphrag_pipeline.settings.settings import GlobalSearchSettings, LocalSearchSettings, Settings
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.tables import CONTRACT_TABLES
from graphrag_pipeline_tests.support.corpora import small_index

QUESTION = "Who is Jacob Marley?"


@pytest.mark.parametrize("method", METHODS)
def test_steps_with_pickled_values_between_them_answer_as_a_search_does(carol: GraphIndex, method: str) -> None:
    state = SearchState(prepare_query(carol, SearchRequest(QUESTION, method)))
    for name in dict.fromkeys((method, state.query.method)):
        steps = list(METHODS[name].steps)
        while steps:
            state = pickle.loads(pickle.dumps(run_step(carol, steps.pop(0), state)))
            if not steps and state.answer is None:
                steps = list(METHODS[state.query.method].steps)
    result = carol.search(QUESTION, method)
    assert state.noted_answer.text == result.answer
    assert state.noted_answer.citations == result.citations
    assert state.read == result.context


@pytest.mark.parametrize("method", METHODS)
def test_a_search_for_the_context_stops_there(carol: GraphIndex, method: str) -> None:
    contexts: list[Context] = []
    query = prepare_query(carol, SearchRequest(QUESTION, method))
    state = run_search(carol, query, Listener(context_only=True, on_context=contexts.append))
    assert state.answer is None and contexts == [state.read]


def test_a_query_holds_the_filters_of_its_time(carol: GraphIndex) -> None:
    query = prepare_query(carol, SearchRequest("Who is Scrooge?", filters=("title~Stave",)))
    assert query.filters == ("title~Stave",) and query.question == query.user_question == "Who is Scrooge?"
    assert query.budget is None and query.snapshot == carol.snapshot.id


def test_only_local_search_has_strategies(small):
    with pytest.raises(PipelineError, match="only local search"):
        small.search("Who?", method="basic", strategy="depth_first")


def test_an_unknown_option_names_the_nearest(small):
    with pytest.raises(PipelineError, match="'top_k_entitys' of local_search; did you mean 'top_k_entities'"):
        small.search("Who?", top_k_entitys=3)


def test_an_option_that_does_not_validate_is_refused(small):
    with pytest.raises(PipelineError, match=r"top_k_entities: .*greater than or equal to 1"):
        small.search("Who?", top_k_entities=0)
    with pytest.raises(PipelineError, match="must not exceed 1"):
        small.search("Who?", community_share=0.9)


def test_options_override_the_settings_for_one_question(carol):
    assert len(carol.search("Who is Scrooge?", context_only=True, top_k_entities=3).context.entities) == 3
    assert len(carol.search("Who is Scrooge?", context_only=True).context.entities) == 10


def test_the_json_form_is_the_contract(carol):
    result = json.loads(carol.search("Who is Jacob Marley?").to_json())
    assert list(result) == [
        "answer", "citations", "context", "usage", "seconds", "method", "question", "snapshot", "selection",
        "answering",
    ]  # fmt: skip
    assert list(result["citations"][0]) == [
        "number", "kind", "id", "human_readable_id", "text_unit_id", "document_id", "document_title", "quote", "start",
        "end", "text_unit", "document_path", "first_page", "last_page",
        "document_date", "record",
    ]  # fmt: skip
    assert list(result["context"]) == ["entities", "relationships", "reports", "claims", "text_units"]
    assert {"id", "document_id", "document_title", "text", "start", "end", "score"} <= set(
        result["context"]["text_units"][0]
    )
    for records in result["context"].values():
        assert all({"id", "human_readable_id", "score", "n_tokens"} <= set(record) for record in records)
    assert result["usage"]["calls"] == 0
    assert result["usage"]["cost"] == 0.0
    assert result["usage"]["tokens"] == result["usage"]["by_model"]["embedded"]["input_tokens"] > 0
    excerpts = [unit for unit in result["context"]["text_units"] if unit["is_excerpt"]]
    assert result["selection"] == {"strategy": "balanced", "excerpts": len(excerpts), "unheard": []}
    assert result["snapshot"] == carol.snapshot.id
    assert result["seconds"] > 0


def test_the_context_alone_has_no_answer(carol):
    result = carol.search("Who is Jacob Marley?", context_only=True)
    assert (result.answer, result.citations) == ("", ())
    assert "JACOB MARLEY" in result.to_markdown()
    assert result.context == carol.search("Who is Jacob Marley?").context


def test_markdown_lists_where_each_marker_points(small):
    result = small.search("Who haunted Scrooge?")
    assert "\u201cMarley haunted Scrooge.\u201d" in result.to_markdown()


@pytest.mark.parametrize("method", ["local", "basic", "global"])
def test_trace_takes_what_stands_in_brackets_at_each_source(small, method):
    result = small.search("Who haunted Scrooge?", method=method)
    named = re.findall(r"\((\w+ \d+)\): \u201c", result.sources_to_markdown())
    assert [read_citation(name) for name in named] == [read_citation(citation.record) for citation in result.citations]
    assert named, method


def test_the_same_question_gets_the_same_answer(carol_root):
    answers = []
    for _ in range(2):
        with GraphIndex.open(carol_root) as index:
            result = index.search("Why does Scrooge weep?", method="global").to_dict()
            answers.append({key: value for key, value in result.items() if key != "seconds"})
    assert answers[0] == answers[1]


def test_steps_hand_over_values_that_pickle(carol):
    question = "Who is Jacob Marley?"
    selection = rate_reports(carol, question, GlobalSearchSettings())
    points = map_points(carol, question, selection)
    context = local_search.select_local_context(carol, question, LocalSearchSettings())
    assert pickle.loads(pickle.dumps((selection, points, context))) == (selection, points, context)


def test_an_empty_index_says_so(tmp_path):
    empty = {name: table.empty() for name, table in CONTRACT_TABLES.items()}
    snapshot = small_index.freeze(tmp_path, empty)
    index = GraphIndex(snapshot, Settings(), small_index.load_static_embeddings())
    for method in METHODS:
        assert index.search("Who?", method=method).answer == EMPTY_INDEX


def test_opening_what_is_no_index_says_what_to_do(tmp_path):
    with pytest.raises(SettingsError, match="graphrag-pipeline init"):
        GraphIndex.open(tmp_path)
    (tmp_path / "settings.yaml").write_text(render_settings())
    with pytest.raises(NoSnapshotError, match="no published index"):
        GraphIndex.open(tmp_path)
    with pytest.raises(NoSnapshotError, match="is missing"):
        GraphIndex.open(tmp_path, snapshot="0123456789abcdef")


def test_a_published_snapshot_is_opened_by_root(tmp_path):
    (tmp_path / "settings.yaml").write_text(render_settings())
    snapshot = small_index.freeze(tmp_path)
    SnapshotStore(tmp_path).point_at(snapshot.id)
    with GraphIndex.open(str(tmp_path)) as index:
        assert index.search("Who haunted Scrooge?").snapshot == snapshot.id


def test_queries_import_neither_indexing_nor_dagster_and_open_lazily():
    heavy = ("dagster", "lancedb", "pandas", "sqlalchemy", "graphrag_pipeline.indexing", "graspologic_native")
    assert imported_of(heavy, "graphrag_pipeline.query.index.graph_index") == "[]"
    estimates = ("sqlalchemy", "graphrag_pipeline.inspection.estimates")
    assert imported_of(estimates, "graphrag_pipeline.inspection.costs") == "[]", "each command logs its costs"


def imported_of(heavy: tuple[str, ...], module: str) -> str:
    code = f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_tables_are_frames_and_the_graph_is_of_networkx(small):
    entities, graph = small.table("entities"), small.graph()
    assert list(entities.columns) == CONTRACT_TABLES["entities"].schema.names
    assert dict(graph.nodes(data="title")) == dict(zip(entities["id"], entities["title"], strict=True))
    assert graph.number_of_edges() == len(small.table("relationships")) > 0
    with pytest.raises(PipelineError, match="there is no table `entitys`; the tables are documents, "):
        small.table("entitys")
