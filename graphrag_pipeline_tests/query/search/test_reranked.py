"""Local and basic search with a reranking model and with keywords of a model: order, account, fallbacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.understanding.keywords import MAX_KEYWORDS, Keywords, read_keywords
from graphrag_pipeline.settings.file import load_settings
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.tables import CONTRACT_TABLES
from graphrag_pipeline_tests.model_server import Fault, ModelServer, ReceivedRequest, Reply, running_model_server
from graphrag_pipeline_tests.support.corpora.small_index import contract_tables, freeze
from graphrag_pipeline_tests.support.models.model_index import open_with_model
from graphrag_pipeline_tests.support.paths import REPOSITORY
from graphrag_pipeline_tests.support.thoroughness import sums

QUESTION = "Who is Ebenezer Scrooge's clerk?"
EMBEDDED = {"engine": "embedded"}
NAMED = ("entities", "relationships", "covariates", "communities", "community_reports")
REFERENCES = ["entity_ids", "relationship_ids", "covariate_ids"]


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with running_model_server() as running:
        yield running


@pytest.fixture
def open_index(carol: GraphIndex, tmp_path: Path, server: ModelServer) -> Any:
    server.reset()

    def open_it(on: ModelServer = server, **rerank: Any) -> GraphIndex:
        model = {"model": "test-rerank", "base_url": on.base_url, **rerank}
        return open_with_model(carol, tmp_path, on, answers=EMBEDDED, rerank_model=model)

    return open_it


def by_length(request: ReceivedRequest) -> Reply | None:
    """Scores that put the shortest text first."""
    return Reply(scores=[1 / len(text) for text in request.inputs]) if request.kind == "rerank" else None


@pytest.mark.parametrize("method", ["basic", "local"])
def test_without_the_option_no_reranker_is_called(open_index: Any, server: ModelServer, method: str) -> None:
    result = open_index().search(QUESTION, method, context_only=True)
    assert "reranked" not in result.selection and server.count() == 0


@pytest.mark.parametrize(("method", "options"), [("basic", {}), ("local", {}), ("local", {"strategy": "depth_first"})])
def test_text_units_come_in_the_order_of_the_scores(open_index: Any, method: str, options: dict[str, Any]) -> None:
    with running_model_server(by_length) as server:
        result = open_index(server).search(QUESTION, method, context_only=True, rerank=True, **options)
    lengths = [len(unit.text) for unit in result.context.text_units if not unit.is_excerpt]
    assert lengths == sorted(lengths) and len(lengths) > 2
    found = result.selection["reranked"]
    assert found["is_reranked"] and found["n_scored"] == found["n_candidates"] >= len(lengths)
    assert (found["model"], found["failure"]) == ("test-rerank", "")
    assert result.usage.by_model["test-rerank"].calls == 1


def test_a_reranker_may_choose_among_more_than_top_k(open_index: Any) -> None:
    with running_model_server(by_length) as server:
        index = open_index(server, n_candidates=30)
        plain = index.search(QUESTION, "basic", context_only=True, top_k=3)
        reranked = index.search(QUESTION, "basic", context_only=True, top_k=3, rerank=True)
    assert len(reranked.context.text_units) == 3 and reranked.selection["reranked"]["n_candidates"] > 6
    assert {unit.id for unit in reranked.context.text_units} != {unit.id for unit in plain.context.text_units}


@pytest.mark.parametrize(("fault", "method"), sums(["500", "401", "400"], ["basic", "local"]))
def test_a_failure_leaves_the_order_as_it_was_and_is_told(open_index: Any, method: str, fault: str) -> None:
    with running_model_server([("rerank", Fault(fault))]) as server:
        index = open_index(server)
        plain = index.search(QUESTION, method, context_only=True)
        result = index.search(QUESTION, method, context_only=True, rerank=True)
    assert [unit.id for unit in result.context.text_units] == [unit.id for unit in plain.context.text_units]
    found = result.selection["reranked"]
    assert not found["is_reranked"] and fault in found["failure"]
    assert plain.remarks == () and fault in result.remarks[0]


def test_readers_of_the_answer_see_that_the_reranker_failed(open_index: Any) -> None:
    with running_model_server([("rerank", Fault("501"))]) as server:
        result = open_index(server).search(QUESTION, "basic", rerank=True)
    note = "Note: The reranking model test-rerank scored no text unit, so their order stays: "
    assert note in result.to_markdown() and note in result.sources_to_markdown()
    assert result.to_markdown().startswith(result.answer) and "501" in result.remarks[0]


def test_a_question_whose_budget_does_not_pay_is_not_reranked(open_index: Any, server: ModelServer) -> None:
    result = open_index().search(QUESTION, "basic", context_only=True, rerank=True, budget=100)
    assert server.count() == 0 and "budget of 100 tokens" in result.selection["reranked"]["failure"]


def test_text_units_of_a_question_that_matches_no_entity_are_reranked_too(tmp_path: Path) -> None:
    tables = contract_tables()
    tables |= {name: tables[name].slice(0, 0) for name in NAMED}
    tables["text_units"] = tables["text_units"].drop_columns(REFERENCES)
    for name in REFERENCES:
        none = pa.array([[]] * tables["text_units"].num_rows, CONTRACT_TABLES["text_units"].schema.field(name).type)
        tables["text_units"] = tables["text_units"].append_column(name, none)
    tables["text_units"] = tables["text_units"].select(CONTRACT_TABLES["text_units"].schema.names)
    index = GraphIndex(freeze(tmp_path, tables), Settings(), load_static_embeddings())
    with running_model_server(by_length) as server:
        model = {"model": "test-rerank", "base_url": server.base_url}
        result = open_with_model(index, tmp_path, server, answers=EMBEDDED, rerank_model=model).search(
            "Who haunted Scrooge?", "local", context_only=True, rerank=True
        )
        assert server.count("rerank") == 1 and not result.context.entities
    lengths = [len(unit.text) for unit in result.context.text_units]
    assert lengths == sorted(lengths) and lengths and result.selection["reranked"]["is_reranked"]


def test_follow_up_questions_of_drift_are_not_paid_for(carol: GraphIndex, tmp_path: Path, server: ModelServer) -> None:
    server.reset()
    model = {"model": "test-rerank", "base_url": server.base_url}
    options = {"rerank": True, "model_keywords": True}
    index = open_with_model(carol, tmp_path, server, answers=EMBEDDED, rerank_model=model, local_search=options)
    assert index.search(QUESTION, "drift").context.text_units and server.count() == 0
    index.search(QUESTION, "local", context_only=True)
    assert (server.count("rerank"), server.count("keywords")) == (1, 1)


def test_a_reranker_must_be_set(carol: GraphIndex, tmp_path: Path, server: ModelServer) -> None:
    index = open_with_model(carol, tmp_path, server, answers=EMBEDDED)
    with pytest.raises(PipelineError, match=r"rerank_model\.model is empty"):
        index.search(QUESTION, "basic", rerank=True)
    (tmp_path / "settings.yaml").write_text("basic_search: {rerank: true}")
    with pytest.raises(SettingsError, match=r"basic_search\.rerank is true, but rerank_model\.model is empty"):
        load_settings(tmp_path, {})


# ------------------------------------------------------------------------------------------------------------- keywords


def test_low_level_keywords_match_entities_and_high_level_ones_lead_relationships_and_reports(open_index: Any) -> None:
    said = {"high_level_keywords": ["charity towards the poor"], "low_level_keywords": ["Tiny Tim", "Bob Cratchit"]}
    with running_model_server([("keywords", said)]) as server:
        index = open_index(server)
        plain = index.search(QUESTION, "local", context_only=True)
        result = index.search(QUESTION, "local", context_only=True, model_keywords=True)
        again = index.search(QUESTION, "local", context_only=True, model_keywords=True)
        assert server.count("keywords") == 1, "the reply is stored"
    assert result.selection["keywords"] == {
        "high_level": ["charity towards the poor"], "low_level": ["Tiny Tim", "Bob Cratchit"], "failure": ""
    }  # fmt: skip
    titles = [entity.title for entity in result.context.entities]
    assert {"TINY TIM", "BOB CRATCHIT"} <= set(titles)
    assert result.context.relationships[0].id != plain.context.relationships[0].id
    assert result.context.reports[0].id != plain.context.reports[0].id
    assert again.context == result.context and again.usage.by_model["test-chat"].cached == 1


def test_without_keywords_the_search_is_as_before_and_says_why(open_index: Any) -> None:
    with running_model_server([("keywords", "no idea")]) as server:
        index = open_index(server)
        plain = index.search(QUESTION, "local", context_only=True)
        result = index.search(QUESTION, "local", context_only=True, model_keywords=True)
    assert result.context == plain.context
    assert "no JSON object with lists of keywords" in result.selection["keywords"]["failure"]
    [remark] = result.remarks
    assert remark.startswith("The model gave no keywords, so the question itself was searched for: no JSON object")
    assert "keywords" not in plain.selection


def test_keywords_need_shared_packing(open_index: Any) -> None:
    with pytest.raises(PipelineError, match="model_keywords is not possible with strict packing"):
        open_index().search(QUESTION, "local", strategy="depth_first", model_keywords=True)


@pytest.mark.parametrize(
    ("reply", "high", "low"),
    [
        ('{"high_level_keywords": ["a"], "low_level_keywords": ["B", "b", 3, "", "c\\nd"]}', ("a",), ("B", "c d")),
        ('```json\n{"low_level_keywords": ["X"]}\n```', (), ("X",)),
        ('{"high_level_keywords": ["x", "y"], "low_level_keywords": ["X"]}', ("y",), ("X",)),
        ('{"high_level_keywords": [], "low_level_keywords": []}', (), ()),
        (
            '{"high_level_keywords": "labour", "low_level_keywords": "port, Bob Cratchit"}',
            ("labour",),
            ("port", "Bob Cratchit"),
        ),
    ],
)
def test_keywords_are_read(reply: str, high: tuple[str, ...], low: tuple[str, ...]) -> None:
    assert read_keywords(reply) == Keywords(high, low)


def test_an_endless_list_of_keywords_ends() -> None:
    listed = ", ".join(f'"k{i}"' for i in range(500))
    assert len(read_keywords(f'{{"high_level_keywords": [{listed}]}}').high) == MAX_KEYWORDS


@pytest.mark.parametrize("reply", ["", "none", "[]", '{"keywords": ["a"]}', '{"low_level_keywords": 3}'])
def test_a_reply_without_lists_is_refused(reply: str) -> None:
    with pytest.raises(ReplyFormatError, match="lists of keywords"):
        read_keywords(reply)


def test_the_prompt_file_names_both_lists() -> None:
    text = (REPOSITORY / "graphrag_pipeline" / "prompts" / "local_search_keywords.txt").read_text(encoding="utf-8")
    assert "high_level_keywords" in text and "low_level_keywords" in text
