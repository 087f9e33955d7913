"""Strict packing beside Microsoft GraphRAG's own contexts, as `bench parity --record` recorded them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem.listed_folders import write_file_list
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.understanding.entity_matching import ENTITY_VECTORS
from graphrag_pipeline.settings.search import LocalSearchSettings
from graphrag_pipeline.storage.vectors.lance import LanceStore
from graphrag_pipeline.text.tokens import count_tokens
from graphrag_pipeline_tests.bench import parity, parity_local
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model

RECORD_AGAIN = "record again: python -m graphrag_pipeline_tests.bench parity --record"


@pytest.fixture(scope="module")
def recorded() -> Any:
    return parity.read_recording(parity_local.RECORDING)


@pytest.mark.parametrize("limit", parity_local.LIMITS)
def test_contexts_of_100_questions_are_those_of_microsoft_graphrag(
    carol: GraphIndex, recorded: Any, limit: str
) -> None:
    assert len(recorded["questions"]) == parity.N_QUESTIONS
    contexts = parity_local.run_ours(carol, recorded["matched"], limit)
    theirs = recorded["runs"][f"exported {limit}"]
    compared = parity_local.compare_contexts(recorded["questions"], contexts, theirs, limit)
    assert [c.n_equal for c in compared] == [parity.N_QUESTIONS] * len(parity_local.PARTS), (
        f"{parity.describe_unexplained(compared)}\n{RECORD_AGAIN}"
    )


@pytest.mark.parametrize("limit", parity_local.TALK_LIMITS)
def test_contexts_after_a_conversation_are_those_of_microsoft_graphrag(
    carol: GraphIndex, recorded: Any, limit: str
) -> None:
    described = parity_local.run_talks(carol, recorded["matched"], limit)
    name = f"talk {limit}"
    compared = parity_local.compare_descriptions(
        parity_local.PARTS, recorded["questions"], described, recorded["runs"][name], name
    )
    assert {c.n_equal for c in compared} == {parity.N_QUESTIONS}, parity.describe_unexplained(compared)


@pytest.mark.parametrize("style", parity_local.STYLES)
def test_tables_in_another_style_are_those_of_microsoft_graphrag(carol: GraphIndex, recorded: Any, style: str) -> None:
    described = parity_local.run_styled(carol, recorded["matched"], style)
    theirs = recorded["runs"][f"{style} usual"]
    compared = parity_local.compare_descriptions(parity_local.PARTS, recorded["questions"], described, theirs, style)
    assert {c.n_equal for c in compared} == {parity.N_QUESTIONS}, parity.describe_unexplained(compared)


def test_the_recorded_questions_are_those_of_the_bench(carol: GraphIndex, recorded: Any) -> None:
    assert parity_local.make_questions(carol, parity.N_QUESTIONS) == recorded["questions"], RECORD_AGAIN
    assert {len(ids) for ids in recorded["matched"]} == {10}


def test_two_repairs_of_the_import_are_the_only_differences_on_the_tables_of_the_source(
    carol: GraphIndex, recorded: Any
) -> None:
    contexts = parity_local.run_ours(carol, recorded["matched"], "usual")
    compared = parity_local.compare_source(recorded["questions"], contexts, recorded["runs"])
    assert not parity.describe_unexplained(compared), RECORD_AGAIN
    equal = {comparison.what.removeprefix("local, "): comparison.n_equal for comparison in compared}
    assert {n for what, n in equal.items() if what.startswith("repaired")} == {100}
    assert equal["source usual context: community reports"] >= 99 and equal["source usual context: text units"] >= 85


def test_a_question_has_the_context_of_its_matched_entities(carol: GraphIndex) -> None:
    question = "What have Bob Cratchit and Tiny Tim to do with each other?"
    result = carol.search(question, strategy="depth_first", context_only=True)
    [ids] = parity_local.match_ids(carol, [question])
    assert [entity.id for entity in result.context.entities] == ids
    settings = carol.settings.search("local", strategy="depth_first")
    again = parity_local.select_ours(carol, ids, settings)
    numbers = parity_local.describe_context(again, settings)
    assert parity_local.describe_context(result.context, settings) == numbers


def test_each_part_keeps_to_its_share_and_ends_at_the_first_row_that_does_not_fit(carol: GraphIndex) -> None:
    options = {"strategy": "depth_first", "context_only": True, "max_context_tokens": 3_000}
    strict = carol.search("Who is Scrooge?", **options)
    shared = carol.search("Who is Scrooge?", packing="shared", **options)
    assert strict.selection["packing"] == "strict" and "packing" not in shared.selection
    assert strict.context.n_tokens < shared.context.n_tokens <= 3_000
    assert len(strict.context.text_units) == 1  # 1,500 tokens hold one of about 1,200
    assert "-----Sources-----\nid|text\n" in strict.to_markdown() and "# Sources" in shared.to_markdown()


def test_reports_of_all_levels_or_of_the_frontier_are_read(carol: GraphIndex) -> None:
    options = {"context_only": True, "max_context_tokens": 60_000}
    levels = {
        name: {report.level for report in carol.search("Who is Scrooge?", **given, **options).context.reports}
        for name, given in {
            "all": {"report_levels": "all"},
            "frontier": {},
            "depth_first": {"strategy": "depth_first", "community_level": 1},
        }.items()
    }
    assert levels["all"] == {0, 1, 2} and levels["depth_first"] == {0, 1}
    parents = {r.community for r in carol.search("Who is Scrooge?", **options).context.reports}
    children = carol.snapshot.table("communities").to_pylist()
    assert not {row["parent"] for row in children if row["community"] in parents} & parents


def test_a_ranked_table_of_reports_is_sorted_by_rank(carol: GraphIndex) -> None:
    options = {"strategy": "depth_first", "include_community_rank": True, "max_context_tokens": 40_000}
    result = carol.search("Who is Scrooge?", context_only=True, **options)
    ranks = [report.rank for report in result.context.reports]
    assert len(ranks) > 2 and ranks == sorted(ranks, reverse=True)
    assert "-----Reports-----\nid|title|content|rank\n" in result.to_markdown()


def test_names_and_the_delimiter_of_the_tables_are_options(carol: GraphIndex) -> None:
    names = {
        "rank_description": "degree",
        "column_delimiter": "\t",
        "community_context_name": "Communities",
        "entity_context_name": "Nodes",
        "relationship_context_name": "Edges",
        "claim_context_name": "Covariates",
        "text_unit_context_name": "Chunks",
    }
    options = {"context_only": True, "max_context_tokens": 40_000}
    for strategy, heading in (("depth_first", "-----{}-----"), ("balanced", "# {}")):
        result = carol.search("Who is Scrooge?", strategy=strategy, **names, **options)
        lines = result.to_markdown().splitlines()
        for name in ("Communities", "Nodes", "Edges", "Covariates", "Chunks"):
            assert heading.format(name) in lines
        header = lines[lines.index(heading.format("Nodes")) + 1]
        assert header.startswith("id\t") and header.endswith("\tdegree")
        plain = carol.search("Who is Scrooge?", strategy=strategy, **options).to_markdown()
        assert "number of relationships" in plain and "Communities" not in plain.splitlines()


def test_long_names_stay_within_the_budget(carol: GraphIndex) -> None:
    names = {name: f"{name} {'一二三四五六七八九十' * 3}"[:60] for name in ("rank_description", "entity_context_name")}
    for packing in ("strict", "shared"):
        options = {"context_only": True, "max_context_tokens": 3_000, "packing": packing}
        shown = carol.search("Who is Scrooge?", **options, **names).to_markdown()
        assert names["rank_description"] in shown and count_tokens(shown) <= 3_000


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("column_delimiter", "a"),
        ("column_delimiter", "||"),
        ("rank_description", "two\nlines"),
        ("entity_context_name", ""),
        ("entity_context_name", "Reports"),
        ("packing", "loose"),
    ],
)
def test_a_name_that_breaks_the_tables_is_rejected(carol: GraphIndex, option: str, value: str) -> None:
    with pytest.raises(PipelineError, match="options of local_search"):
        carol.search("Who is Scrooge?", context_only=True, **{option: value})


@pytest.mark.parametrize("mark", ["(", ")", "[", "]", ",", ";", "\uff08", "\u3010", "\uff0c", "\n", "\u2028"])
def test_a_heading_that_a_citation_cannot_name_is_rejected(mark: str) -> None:
    with pytest.raises(ValidationError, match=r"without brackets, commas|on one line"):
        LocalSearchSettings(entity_context_name=f"Ent{mark}ities")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a\nb", r"'a\\nb' has a line break; write a name of 1 to 60 characters on one line"),
        ("a\u2028", "has a line break; write a name of 1 to 60"),
        (" a", "' a' begins or ends with white space; write the name without it"),
        ("a" * 61, "'a{20}'... has 61 characters; write a name of 1 to 60"),
    ],
)
def test_an_error_of_a_name_says_what_does_not_fit(value: str, said: str) -> None:
    for name in ("rank_description", "entity_context_name"):
        with pytest.raises(ValidationError, match=said):
            LocalSearchSettings(**{name: value})
    assert LocalSearchSettings(entity_context_name="a" * 60).entity_context_name == "a" * 60


@pytest.mark.parametrize("value", ["", " ", None])
def test_an_empty_name_is_called_empty(value: str | None) -> None:
    for name in ("rank_description", "entity_context_name"):
        with pytest.raises(ValidationError, match="is empty; write a name"):
            LocalSearchSettings(**{name: value})


def test_the_name_of_a_column_does_not_hold_the_delimiter() -> None:
    for options in ({"rank_description": "a|b"}, {"rank_description": "a, b", "column_delimiter": ","}):
        with pytest.raises(ValidationError, match="holds the column_delimiter"):
            LocalSearchSettings(**options)
    assert LocalSearchSettings(rank_description="a|b", column_delimiter=";").rank_description == "a|b"


@pytest.mark.parametrize(
    "name", ["Chunks", "\u8282\u70b9", "Text-units 2", "Entit\u00e9s d'ici", "My Reports", "Report"]
)
def test_a_citation_by_a_changed_heading_resolves(carol: GraphIndex, tmp_path: Path, name: str) -> None:
    options = {"strategy": "depth_first", "text_unit_context_name": name}
    number = carol.search("Who is Scrooge?", context_only=True, **options).context.text_units[0].human_readable_id
    with running_model_server(lambda request: f"Scrooge is a miser [Data: {name} ({number})].") as server:
        result = open_with_model(carol, tmp_path, server).search("Who is Scrooge?", **options)
    assert [citation.human_readable_id for citation in result.citations] == [number]
    assert result.answer == "Scrooge is a miser [1]." and result.answering["invented_citations"] == 0


# ------------------------------------------------------------------------------------------------------ joining vectors


@pytest.fixture(scope="module")
def titled_root(carol_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of A Christmas Carol with a vector table of entities whose ids are titles."""
    root = tmp_path_factory.mktemp("titled") / "root"
    shutil.copytree(carol_root, root)
    with GraphIndex.open(root) as index:
        titles = dict(zip(*index.snapshot.table("entities").select(["id", "title"]).to_pydict().values(), strict=True))
        vectors = index.snapshot.vectors(ENTITY_VECTORS)
        store, folder = LanceStore(root / "snapshots" / "vectors"), vectors.folder
        records = vectors.get(vectors.ids())
    store.delete(f"{folder.name}-{folder.content}", [record.id for record in records])
    store.upsert(f"{folder.name}-{folder.content}", [replace(r, id=titles[r.id]) for r in records])
    write_file_list(root / "snapshots" / "vectors" / folder.name / folder.content)
    return root


def test_vectors_join_entities_by_id_or_by_title(carol: GraphIndex, titled_root: Path) -> None:
    question = "Whom does the miser visit at Christmas?"
    with GraphIndex.open(titled_root) as index:
        found = index.search(question, context_only=True, entity_key="title").context
        assert found.entities == carol.search(question, context_only=True).context.entities
        assert [entity.match for entity in found.entities].count("vector") >= 5
        with pytest.raises(PipelineError, match="set `entity_key` of local search to title"):
            index.search(question, context_only=True)
    with pytest.raises(PipelineError, match="set `entity_key` of local search to id"):
        carol.search(question, context_only=True, entity_key="title")


def test_only_entities_of_a_community_are_matched_if_the_scope_says_so(carol: GraphIndex) -> None:
    n_communities = carol.snapshot.adjacency.counts("entity_communities")
    options = {"context_only": True, "top_k_entities": 561, "max_context_tokens": 200_000}
    every = carol.search("christmas", **options).context.entities
    scoped = carol.search("christmas", entity_scope="in_communities", **options).context.entities
    assert len(every) == 561
    named = sum(entity.match == "name" for entity in every)
    assert int((n_communities > 0).sum()) <= len(scoped) <= int((n_communities > 0).sum()) + named


def test_only_communities_of_the_level_count_for_the_scope(carol: GraphIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hierarchy whose highest level is 1, as an index of another program may have it."""
    read_column = GraphIndex.column

    def lower(index: GraphIndex, table: str, column: str) -> Any:
        values = read_column(index, table, column)
        return values + 1 if (table, column) == ("communities", "level") else values

    monkeypatch.setattr(GraphIndex, "column", lower)
    options = {"context_only": True, "top_k_entities": 9, "entity_scope": "in_communities"}
    ways = [carol.search("christmas", community_level=level, **options).context.entities for level in (0, 1)]
    assert {entity.match for entity in ways[0]} <= {"name"} and "vector" in {entity.match for entity in ways[1]}
