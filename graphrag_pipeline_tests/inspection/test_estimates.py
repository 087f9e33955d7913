"""Estimates of the next run, and the sample that they measure."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from graphrag_pipeline.defs.assets.definitions import BODIES
from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline.demo_model.replies import reply_to
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.inputs.documents import build_documents
from graphrag_pipeline.inspection.corpus_sample import CorpusSample, measure_sample
from graphrag_pipeline.inspection.costs import StageEstimate
from graphrag_pipeline.inspection.estimates import estimate_index
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.open_work import list_failures
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES, Stage
from graphrag_pipeline.pipeline.staleness import find_stale
from graphrag_pipeline_tests.model_server import ReceivedRequest
from graphrag_pipeline_tests.support.models.model_roots import ModelIndex
from graphrag_pipeline_tests.support.roots import build_tables, make_root, put

BELOW_GRAPH = ("summarized_descriptions", "community_reports", "entity_embeddings", "relationship_embeddings",
               "report_embeddings")  # fmt: skip
KINDS = {"summarized_descriptions": "summary", "community_reports": "report"}


def estimate(root: Root) -> dict[str, StageEstimate]:
    """Return the estimates by stage, for the root on disk."""
    opened = Root(root.path)
    return {each.stage: each for each in estimate_index(opened, find_stale(opened, detect_input(opened)))}


def change(root: Root, section: str, **values: object) -> None:
    path = root.path / "settings.yaml"
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    settings[section] = settings.get(section, {}) | values
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")


def add_document(root: Root) -> None:
    """Add a document with the mentions of the first one."""
    [first, *_] = sorted((root.path / "input").iterdir())
    put(root.path, "new.txt", "Once again. " + first.read_text(encoding="utf-8"))


def build_once(root: Root, stage: Stage) -> None:
    """Compute a stage of the whole corpus, though earlier stages are stale."""
    run = StageRun(root, stage, WHOLE)
    run.pin_inputs()
    BODIES[stage.name](run)


def lose_tables(root: Root, *stages: str) -> None:
    """Delete tables, as if a run had been killed before these stages."""
    for stage in stages:
        for head in (root.path / "heads").glob(f"{stage}*"):
            shutil.rmtree(head)


def assert_covers_what_is_paid(model_index: ModelIndex, estimates: dict[str, StageEstimate]) -> None:
    """Run the stale stages: no stage makes more calls than estimated."""
    model_index.server.reset()
    build_tables(Root(model_index.root.path))
    for stage, kind in KINDS.items():
        assert model_index.server.count(kind) <= (estimates[stage].call_range[1] if stage in estimates else 0), stage
    n_embedded = sum(each.call_range[1] for each in estimates.values() if each.stage.endswith("_embeddings"))
    assert model_index.server.count("embedding") <= n_embedded


def test_the_estimate_after_a_kill_past_extraction_covers_later_stages(model_index: ModelIndex) -> None:
    lost = ("entities", "relationships", "covariates", "entity_merges", "graph", "descriptions", "summarized",
            "communit", "entity_emb", "relationship_emb", "report_emb")  # fmt: skip
    lose_tables(model_index.root, *lost)
    shutil.rmtree(model_index.root.cache_folder)
    estimates = estimate(model_index.root)
    assert "extracted_graph" not in estimates
    assert all(estimates[stage].n_calls and estimates[stage].is_scaled for stage in BELOW_GRAPH)


@pytest.mark.thorough
def test_the_estimate_after_a_kill_with_extraction_paid_covers_later_stages(model_index: ModelIndex) -> None:
    shutil.rmtree(model_index.root.path / "heads")
    estimates = estimate(model_index.root)
    assert estimates["extracted_graph"].n_calls == 0 < estimates["extracted_graph"].n_cached
    assert all(estimates[stage].n_calls for stage in BELOW_GRAPH)


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ("resolution", {"min_similarity": 0.95}),
        ("extraction", {"max_gleanings": 0}),
        ("extraction", {"max_gleanings": 2}),
        ("graph", {"weight": "n_mentions"}),
    ],
)
def test_a_changed_setting_of_the_graph_may_change_all_below(
    model_index: ModelIndex, section: str, values: dict[str, object]
) -> None:
    change(model_index.root, section, **values)
    estimates = estimate(model_index.root)
    assert all(estimates[stage].n_calls for stage in BELOW_GRAPH), estimates
    assert_covers_what_is_paid(model_index, estimates)


def test_a_changed_setting_of_summaries_changes_vectors_and_reports_too(model_index: ModelIndex) -> None:
    change(model_index.root, "descriptions", max_words=77)
    estimates = estimate(model_index.root)
    assert all(estimates[stage].n_calls for stage in BELOW_GRAPH)
    assert not estimates["summarized_descriptions"].is_scaled

    def longer(request: ReceivedRequest) -> str | None:
        return reply_to(request.kind, request.conversation) + " And more." if request.kind == "summary" else None

    model_index.script = longer
    assert_covers_what_is_paid(model_index, estimates)


def test_a_new_document_is_estimated_by_its_mentions(model_index: ModelIndex) -> None:
    add_document(model_index.root)
    estimates = estimate(model_index.root)
    assert estimates["summarized_descriptions"].n_calls > 0
    assert_covers_what_is_paid(model_index, estimates)


def test_a_failed_text_unit_is_estimated_by_its_possible_mentions(model_index: ModelIndex) -> None:
    root = model_index.root
    add_document(root)
    model_index.script = lambda request: "Sorry." if request.kind == "extraction" else None
    build_tables(root, ["corpus_manifest", "documents", "text_units", "extracted_graph"])
    for stage in STAGES.values():
        if not stage.is_partitioned:
            build_once(root, stage)
    n_failed = len(list_failures(root))
    assert n_failed
    estimates = estimate(root)
    extraction = estimates["extracted_graph"]
    assert extraction.n_calls >= n_failed
    assert all(estimates[stage].call_range[1] for stage in BELOW_GRAPH)
    model_index.server.reset()
    build_tables(Root(root.path), ["extracted_graph"])
    assert model_index.server.count() == n_failed
    model_index.script = None
    assert_covers_what_is_paid(model_index, estimate(root))


@pytest.mark.thorough
def test_a_first_build_is_estimated_from_a_sample_of_the_corpus_within_its_range(model_index: ModelIndex) -> None:
    root, server = model_index.root, model_index.server
    for folder in ("heads", "tables", "snapshots", "cache"):
        shutil.rmtree(root.path / folder, ignore_errors=True)
    estimates = estimate(root)
    server.reset()
    build_tables(Root(root.path))
    for stage, kind in KINDS.items():
        least, most = estimates[stage].call_range
        assert estimates[stage].is_scaled and 0 < least < estimates[stage].n_calls < most
        assert least <= server.count(kind) <= most, stage
        assert most <= 6 * least, "the range is of use"


def sample(n_units: int, n_half: int, whole: int, half: int) -> CorpusSample:
    return CorpusSample(n_units, n_half, {"community_reports": whole}, {"community_reports": half})


def test_documents_that_name_the_same_things_need_more_descriptions(tmp_path: Path) -> None:
    same = {f"{n}.txt": f"Maud Harlan met Piet Maas in Brantwick on day {n}. Piet Maas paid." for n in range(8)}
    names = ("Abel", "Bruno", "Carla", "Doris", "Edgar", "Frida", "Gustav", "Helga")
    other = {f"{name}.txt": f"{name} Kestrel{name.lower()} went home. It rained." for name in names}
    counts = [
        measure_sample(build_documents(list(root.read_input())), root).counts
        for root in [make_root(tmp_path / key, texts) for key, texts in (("same", same), ("other", other))]
    ]
    assert counts[0]["summarized_descriptions"] >= 3 and counts[1]["summarized_descriptions"] == 0
    assert counts[0]["entity_embeddings"] < counts[1]["entity_embeddings"]
