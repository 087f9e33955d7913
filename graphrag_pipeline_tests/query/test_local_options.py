"""What the options of local search change: entities, reports, relationships, what a model sees, what a result lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.rendering import render_context
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search import local as local_search
from graphrag_pipeline.query.search_result import SearchResult
from graphrag_pipeline.settings.settings import LocalSearchSettings
from graphrag_pipeline.text.tokens import count_tokens
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model

QUESTION = "Who is Jacob Marley?"


def context_of(index: GraphIndex, question: str = QUESTION, **options: object) -> Context:
    return index.search(question, context_only=True, **options).context


def titles(context: Context) -> list[str]:
    return [entity.title for entity in context.entities]


def test_entities_are_included_and_excluded_by_any_of_their_names_and_are_exactly_k(carol: GraphIndex) -> None:
    plain = titles(context_of(carol, top_k_entities=5))
    changed = titles(
        context_of(
            carol, top_k_entities=5, include_entity_names=["tiny tim"], exclude_entity_names=["Jacob Marley", plain[1]]
        )
    )
    assert changed[0] == "TINY TIM"
    assert not {"JACOB MARLEY", plain[1]} & set(changed)
    assert len(set(changed)) == len(plain) == 5
    assert titles(context_of(carol, top_k_entities=1, include_entity_names=["Tiny Tim", "Bob"])) == ["TINY TIM"]


@pytest.mark.parametrize("strategy", ["balanced", "graph"])
def test_a_walk_does_not_start_at_an_excluded_entity(carol: GraphIndex, strategy: str) -> None:
    question = "What did Scrooge say to Tiny Tim?"
    plain, without = (
        [unit.id for unit in context_of(carol, question, strategy=strategy, exclude_entity_names=names).text_units]
        for names in ((), ("TINY TIM",))
    )
    assert plain != without


def test_a_name_that_no_entity_bears_is_said_and_does_no_harm(carol: GraphIndex) -> None:
    result = carol.search(QUESTION, context_only=True, include_entity_names=["Zed", "Fred"], exclude_entity_names=["Y"])
    assert result.selection["unknown_entity_names"] == ["Zed", "Y"]
    assert len(result.context.entities) == 10


def test_reports_ranked_too_low_are_not_read(carol: GraphIndex) -> None:
    ranks = [report.rank for report in context_of(carol).reports]
    assert min(ranks) < 8 <= max(ranks)
    assert {report.rank for report in context_of(carol, min_community_rank=8).reports} <= {r for r in ranks if r >= 8}
    assert not context_of(carol, min_community_rank=10, exclude_entity_names=()).reports or 10 in ranks


def test_summaries_stand_for_reports_and_cost_what_they_say(carol: GraphIndex) -> None:
    whole = context_of(carol, max_context_tokens=3_000)
    short = context_of(carol, max_context_tokens=3_000, use_community_summary=True)
    assert len(short.reports) > len(whole.reports)
    for report in short.reports:
        assert report.content == report.summary
        assert report.n_tokens == count_tokens(f"{report.title}\n{report.summary}")
    assert short.n_tokens <= 3_000


@pytest.mark.parametrize(("attribute", "column"), [("rank", "rank"), ("combined_degree", "rank"), ("weight", "weight")])
def test_relationships_are_ranked_by_an_attribute(carol: GraphIndex, attribute: str, column: str) -> None:
    settings = LocalSearchSettings(relationship_ranking_attribute=attribute, max_context_tokens=60_000)
    context = local_search.select_local_context(carol, QUESTION, settings)
    keys = [(not pair.is_in_network, -pair.score, -getattr(pair, column)) for pair in context.relationships]
    assert keys == sorted(keys)


def test_columns_that_a_model_sees_can_be_left_out(carol: GraphIndex, tmp_path: Path) -> None:
    options = {"include_entity_rank": False, "include_relationship_weight": False, "include_community_rank": True}
    shown = carol.search(QUESTION, context_only=True, **options).to_markdown()
    assert "id|title|type|description\n" in shown and "id|source|target|description\n" in shown
    assert "(rank 8" in shown
    plain = carol.search(QUESTION, context_only=True)
    assert plain.to_markdown() == render_context(plain.context)
    assert (
        "id|title|type|description|number of relationships\n" in plain.to_markdown()
        and "(rank" not in plain.to_markdown()
    )
    assert "description|weight\n" in plain.to_markdown()
    with running_model_server(lambda request: "Nobody.") as server:
        open_with_model(carol, tmp_path, server).search(QUESTION, **options)
    [call] = server.calls
    assert call.body and shown.splitlines()[3] in call.body["messages"][0]["content"]


def test_a_question_names_the_form_of_its_answer(small: GraphIndex, tmp_path: Path) -> None:
    with running_model_server(lambda request: "Nobody.") as server:
        index = open_with_model(small, tmp_path, server, answers={"engine": "model", "response_type": "one line"})
        index.search(QUESTION)
        index.search(QUESTION, response_type="a list of 3 to 7 points")
    first, second = (call.body["messages"][0]["content"] for call in server.calls if call.body)
    assert "one line" in first
    assert "a list of 3 to 7 points" in second and "one line" not in second


def test_candidates_are_listed_behind_what_was_chosen_and_marked(carol: GraphIndex) -> None:
    options = {"context_only": True, "max_context_tokens": 4_000}
    plain = carol.search(QUESTION, **options)
    result = carol.search(QUESTION, return_candidate_context=True, **options)
    assert result.context == plain.context and result.candidates is not None and plain.candidates is None
    tables = result.to_dict()["context"]
    for name, records in vars(result.context).items():
        assert [r["id"] for r in tables[name] if r["in_context"]] == [r.id for r in records]
        assert len({(r["id"], r.get("excerpt_start")) for r in tables[name]}) == len(tables[name])
    everything = carol.search(QUESTION, context_only=True, max_context_tokens=100_000)
    assert len(tables["relationships"]) == len(everything.context.relationships)
    assert sum(not r["in_context"] for r in tables["text_units"]) > 0
    assert all("in_context" not in r for r in plain.to_dict()["context"]["entities"])
    none = carol.search(QUESTION, context_only=True, return_candidate_context=True, max_context_tokens=100)
    assert none.context.is_empty and none.candidates is not None and len(none.candidates.entities) == 10


def test_depth_first_is_by_similarity_and_reads_nothing_but_the_entities_text_units(carol: GraphIndex) -> None:
    context = context_of(carol, QUESTION, strategy="depth_first", top_k_entities=3, max_context_tokens=60_000)
    scores = [entity.score for entity in context.entities]
    assert scores == sorted(scores, reverse=True)
    first = [titles(context).index(unit.entities[0]) for unit in context.text_units]
    assert first == sorted(first)


@pytest.mark.parametrize(
    "options",
    [
        {"min_community_rank": 11},
        {"relationship_ranking_attribute": "fame"},
        {"include_entity_names": "Scrooge"},
        {"conversation_history": [("system", "Obey.")]},
        {"conversation_history": "Who?"},
        {"conversation_history": [{"role": "user"}]},
        {"conversation_history_max_turns": -1},
    ],
)
def test_values_that_make_no_sense_are_refused_by_name(small: GraphIndex, options: dict[str, object]) -> None:
    with pytest.raises(PipelineError, match=f"options of local_search: {next(iter(options))}"):
        small.search(QUESTION, **options)


def test_an_answer_quotes_nothing_but_its_context(carol: GraphIndex) -> None:
    for limit in (100, 300, 2_500, 12_000):
        for strategy in ("balanced", "depth_first"):
            result = carol.search("What happens to Tiny Tim?", strategy=strategy, max_context_tokens=limit)
            assert_quotes_context(result)
            assert result.context.n_tokens <= limit
    assert carol.search("What happens to Tiny Tim?", max_context_tokens=100).answer.startswith("Not answered: no text")


def assert_quotes_context(result: SearchResult) -> None:
    units = {unit.id for unit in result.context.text_units}
    described = {entity.id for entity in result.context.entities} | {pair.id for pair in result.context.relationships}
    for citation in result.citations:
        assert (citation.text_unit_id if citation.kind == "text_unit" else citation.id) in units | described
