"""From citations down to characters of documents, and to the prompt, model, reply and run behind each record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.citations import KINDS, render_citation
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.runs.lookup import finding_runs
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.inspection.tracing import StageRecords, Trace, TraceNode, read_citation, trace_citation
from graphrag_pipeline.pipeline.data_versions import asset_data_version
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.settings.rendering import render_settings
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline_tests.bench.articles import write_articles
from graphrag_pipeline_tests.support.command_line import Call, assert_one_line_error
from graphrag_pipeline_tests.support.corpora import small_index
from graphrag_pipeline_tests.support.models.model_roots import ModelIndex


def trace(root: Root, citation: str, n_most: int = 3, snapshot: str | None = None) -> Trace:
    with finding_runs(root) as find_run, GraphIndex.open(root.path, snapshot) as index:
        return trace_citation(root, index, citation, find_run, n_most)


def nodes_below(node: TraceNode) -> Iterator[TraceNode]:
    yield node
    for below in node.below:
        yield from nodes_below(below)


def of_kind(traced: Trace, kind: str) -> list[TraceNode]:
    return [found for node in traced.nodes for found in nodes_below(node) if found.kind == kind]


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("[Data: Entities (12, 13); Reports (3)]", {"Entities": [12, 13], "Reports": [3]}),
        ("He is a clerk [Data: Sources (7)] and poor [Data: Sources (7, 8, +more)].", {"Sources": [7, 8]}),
        ("Entities (12)", {"Entities": [12]}),
        ("Entities:12", {"Entities": [12]}),
        ("entity 12", {"Entities": [12]}),
        ("Entities: 1-3, 7", {"Entities": [1, 2, 3, 7]}),
        ("relationship 5; text unit 7; report #2", {"Relationships": [5], "Sources": [7], "Reports": [2]}),
        ("text_unit:7", {"Sources": [7]}),
        ("source 7", {"Sources": [7]}),
        ("Covariates (4)", {"Claims": [4]}),
    ],
)
def test_citations_are_read_as_answers_write_them_and_shorter(text: str, cited: dict[str, list[int]]) -> None:
    assert read_citation(text) == cited


@given(st.dictionaries(st.sampled_from(KINDS), st.lists(st.integers(0, 10**8), min_size=1, unique=True), min_size=1))
def test_written_citations_are_read_back(cited: dict[str, list[int]]) -> None:
    assert read_citation(render_citation((kind, map(str, numbers)) for kind, numbers in cited.items())) == cited


def test_an_entity_leads_to_its_mentions_in_places_of_documents(indexed_by_model: ModelIndex) -> None:
    root = indexed_by_model.root
    traced = trace(root, "Entities:0", n_most=50)
    [entity] = traced.nodes
    index = root.snapshots.open()
    [row] = index.take("entities", [0], ["id", "title", "text_unit_ids"])
    assert (entity.kind, entity.id, entity.name, entity.number) == ("entity", row["id"], row["title"], 0)
    units = of_kind(traced, "text unit")
    assert {unit.id for unit in units} == set(row["text_unit_ids"])
    documents = {document["path"]: document["text"] for document in index.table("documents").to_pylist()}
    for unit in units:
        assert documents[unit.facts["path"]][unit.facts["start"] : unit.facts["end"]] == unit.name
        mentions = [below for below in unit.below if below.kind == "mention"]
        assert mentions and {normalize_title(mention.name) for mention in mentions} == {row["title"]}
        assert [below.facts["path"] for below in unit.below if below.kind == "document"] == [unit.facts["path"]]


def test_a_mention_names_its_prompt_model_reply_and_run(indexed_by_model: ModelIndex) -> None:
    root = indexed_by_model.root
    traced = trace(root, "Entities:0")
    mention = of_kind(traced, "mention")[0].origin
    assert mention and mention.stage == "extracted_graph" and mention.partition in ("000", "001")
    assert mention.model == "test-chat" and mention.reply and mention.reply["model"] == "test-chat"
    assert mention.prompts["extract_graph"] == root.prompt("extract_graph").sha256[:16]
    assert mention.request_key in root.models.cache.read([mention.request_key or ""])
    with open_instance(root) as instance:
        run = instance.get_run_by_id(mention.run or "")
        assert run and run.tags["dagster/asset_partition_range_start"] <= mention.partition
        assert mention.partition <= run.tags["dagster/asset_partition_range_end"]
        published = instance.get_run_by_id(traced.published_by or "")
        assert published and published.is_success
    [graph] = [node.origin for node in traced.nodes]
    assert graph and graph.model == "" and graph.request_key is None and graph.run == traced.published_by


def test_a_report_leads_to_its_community_and_its_citations(indexed_by_model: ModelIndex) -> None:
    root = indexed_by_model.root
    reports = root.snapshots.open().table("community_reports").to_pylist()
    written = next(report for report in reports if not report["is_verbatim"])
    traced = trace(root, f"[Data: Reports ({written['human_readable_id']})]", n_most=4)
    [report] = traced.nodes
    assert report.origin and report.origin.request_key
    assert report.origin.prompts == {"community_report": root.prompt("community_report").sha256[:16]}
    [community] = [node for node in report.below if node.kind == "community"]
    assert community.number == written["community"] and community.facts["level"] == written["level"]
    cited = read_citation(written["full_content"])
    shown = {(node.kind, node.number) for node in report.below if node.kind in ("entity", "relationship")}
    assert shown and shown <= {
        (kind, number) for name, kind in (("Entities", "entity"), ("Relationships", "relationship"))
        for number in cited.get(name, [])
    }  # fmt: skip
    assert of_kind(traced, "finding") and of_kind(traced, "document") and of_kind(traced, "mention")


def test_a_relationship_leads_to_mentions_of_the_pair_in_either_order(indexed_by_model: ModelIndex) -> None:
    root = indexed_by_model.root
    traced = trace(root, "relationship 0", n_most=50)
    [pair] = traced.nodes
    mentions = of_kind(traced, "mention")
    assert mentions and all(
        set(map(normalize_title, m.name.split(" -- "))) == set(pair.name.split(" -- ")) for m in mentions
    )


def test_the_prompts_of_a_snapshot_are_shown_after_they_changed(model_index: ModelIndex) -> None:
    old, first = model_index.root.prompt("community_report").sha256[:16], model_index.root.snapshots.current()
    model_index.change_prompt("community_report")
    citation = "Reports (0)"
    assert trace(model_index.root, citation).nodes[0].origin.prompts["community_report"] == old
    run_index(model_index.root)
    now = trace(model_index.root, citation).nodes[0].origin
    assert now.prompts["community_report"] == model_index.root.prompt("community_report").sha256[:16] != old
    [before] = trace(model_index.root, citation, snapshot=first).nodes
    assert before.origin.prompts["community_report"] == old and before.origin.code_version != now.code_version


@pytest.fixture(scope="module")
def small_root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    """The small index as an import leaves it: without stage tables."""
    path = tmp_path_factory.mktemp("small")
    (path / "settings.yaml").write_text(render_settings(), encoding="utf-8")
    SnapshotStore(path).point_at(small_index.freeze(path).id)
    return Root(path)


def test_an_index_without_stage_tables_is_traced_to_its_documents(small_root: Root) -> None:
    traced = trace(small_root, "Claims:0; Reports:0; Sources:0")
    assert [node.kind for node in traced.nodes] == ["claim", "report", "text unit"]
    assert {node.name for node in of_kind(traced, "document")} >= {"a.txt", "b.txt"}
    assert not any(node.origin for top in traced.nodes for node in nodes_below(top))
    assert traced.published_by is None


def test_the_command_prints_a_tree_or_json(indexed_by_model: ModelIndex, call: Call) -> None:
    root = indexed_by_model.root.path
    output = call("--root", root, "trace", "Entities:0", "--most", "1").out
    for words in (
        "entity 0: ",
        "made by graph; code version ",
        "; embedded engine; run ",
        "characters 0-",
        "mention: ",
        "model test-chat; prompts extract_graph ",
        "; request ",
        "document: ",
    ):
        assert words in output, output
    facts = [line for line in output.splitlines() if "; names " in line]
    assert facts and not any(sign in line for line in facts for sign in ("[", "'", "{")), "no lists of Python"
    values = json.loads(call("--root", root, "trace", "Entities:0", "--json").out)
    assert values["nodes"][0]["kind"] == "entity" and values["nodes"][0]["below"]
    assert_one_line_error(call("--root", root, "trace", "[1]"), "names no record")


def test_the_way_to_a_document_needs_no_dagster_home(small_root: Root, call: Call) -> None:
    output = call("--root", small_root.path, "trace", "Sources:0").out
    assert "path b.txt" in output or "path a.txt" in output or "path c.txt" in output
    assert not Path(small_root.path / "dagster").exists()


def test_a_carried_over_record_is_traced_to_the_run_that_made_it(model_index: ModelIndex) -> None:
    root = model_index.root
    first = root.snapshots.current_manifest()
    old_keys = set(filter(None, root.tables.read("descriptions")["request_key"].to_pylist()))
    write_articles(root.path / "input", 7)
    run_index(root)
    new_keys = set(filter(None, root.tables.read("descriptions")["request_key"].to_pylist()))
    stages = StageRecords(root, root.snapshots.open(), lambda stage, partition, data_version: data_version)
    made = stages.origin("summarized_descriptions", request_key=min(old_keys & new_keys))
    again = stages.origin("summarized_descriptions")
    assert first and made and again
    heads = [first.heads[f"{table}/all"]["data_version"] for table in STAGES["summarized_descriptions"].tables]
    assert made.run == asset_data_version(heads) != again.run
