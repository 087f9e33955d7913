"""Measured quality of an index, and the agreement of a model with the embedded engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.evaluation.index_quality import measurement
from graphrag_pipeline.evaluation.index_quality.figures import FIGURES
from graphrag_pipeline.evaluation.index_quality.measurement import (
    compare_engines,
    measure_agreement,
    measure_quality,
)
from graphrag_pipeline.indexing.ports import Extractor
from graphrag_pipeline.inspection.index_state import read_embedding_figures
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, SNAPSHOT
from graphrag_pipeline.ports import load_port
from graphrag_pipeline.publishing.candidates import freeze_candidate
from graphrag_pipeline.settings.section import QualitySettings
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.tables import VECTOR_TABLES
from graphrag_pipeline_tests.model_server import ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.command_line import Outcome
from graphrag_pipeline_tests.support.corpora.small_index import contract_tables
from graphrag_pipeline_tests.support.models.model_roots import KEY, KEY_VARIABLE, make_model_root
from graphrag_pipeline_tests.support.roots import CAROL, build_tables, built_root, make_root
from graphrag_pipeline_tests.support.two_snapshots import _indexed_twice, first_of, root

__all__ = ["_indexed_twice", "root"]

Call = Callable[..., Outcome]
POOR = '("entity"<|>Brantwick<|>GEO<|>Brantwick is a place.)\n<|COMPLETE|>'


def figures_of(outcome: Outcome) -> dict[str, dict]:
    return {row["name"]: row for row in json.loads(outcome.out)["figures"]}


def test_every_figure_of_the_published_snapshot_is_shown(root: Root, call: Call) -> None:
    outcome = call("--root", root.path, "evaluate", "--index")
    assert outcome.status == 0, outcome.err
    lines = outcome.out.splitlines()
    assert [line.split()[0] for line in lines[1 : len(FIGURES) + 1]] == list(FIGURES)
    assert f"snapshot {root.snapshots.current()}, entities extracted by the embedded engine: " in lines[-1]
    record = json.loads(call("--root", root.path, "evaluate", "--index", "--json").out)
    assert record["snapshot"] == root.snapshots.current() and record["figures"][0]["n"] == 2
    assert figures_of(call("--root", root.path, "evaluate", "--index", "--json"))["placeholders"]["value"] is None


def test_another_snapshot_is_measured_and_compared(root: Root, call: Call) -> None:
    first = first_of(root)
    record = json.loads(call("--root", root.path, "evaluate", "--index", "--snapshot", first[:8], "--json").out)
    assert record["snapshot"] == first and record["figures"][0]["n"] == 3
    compared = call("--root", root.path, "evaluate", "--index", "--against", first[:8])
    assert compared.out.splitlines()[0].split()[:3] == ["figure", "value", first[:8]]


def test_only_the_option_makes_a_warning_an_exit_status(root: Root, call: Call, monkeypatch) -> None:
    monkeypatch.setenv("GRAPHRAG__QUALITY__MAX_SINGLETONS", "0")
    monkeypatch.setenv("GRAPHRAG__QUALITY__MIN_TYPE_ENTROPY", "9")
    plain = call("--root", root.path, "evaluate", "--index")
    assert plain.status == 0 and "WARN" in plain.out and "`quality.thresholds.min_type_entropy`" in plain.out
    assert call("--root", root.path, "evaluate", "--index", "--fail-on-warnings").status == 1
    monkeypatch.setenv("GRAPHRAG__QUALITY__MIN_TYPE_ENTROPY", "null")
    assert not figures_of(call("--root", root.path, "evaluate", "--index", "--json"))["type_entropy"]["is_warning"]


def test_figures_are_stored_and_the_same_when_measured_again(root: Root) -> None:
    first = measure_quality(root, root.snapshots.open())
    [path] = (root.path / "evaluations" / first.snapshot).glob("quality-*.json")
    content = path.read_bytes()
    assert measure_quality(root, root.snapshots.open()) == first
    path.write_text("{")
    assert measure_quality(root, root.snapshots.open()) == first and path.read_bytes() == content


def check_in_dagster(root: Root) -> dict[str, dg.AssetCheckEvaluation]:
    """Run the checks of the published snapshot alone; return those of its figures."""
    job = dg.define_asset_job("checks", dg.AssetSelection.checks_for_assets(SNAPSHOT.name))
    definitions = dg.Definitions.merge(build_definitions(root), dg.Definitions(jobs=[job]))
    with open_instance(root) as instance:
        result = definitions.resolve_job_def("checks").execute_in_process(instance=instance)
    assert result.success
    found = {check.check_name: check for check in result.get_asset_check_evaluations()}
    del found["up_to_date"]
    return found


def test_averaged_vectors_that_differ_from_those_of_whole_texts_warn(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    settings = "quality: {thresholds: {min_averaged_cosine: 1}}\nstorage: {n_buckets: 2}\n"
    settings += "embeddings: {engine: model, n_compared: 2}\nembedding_model: "
    long = {name: f"{text} " * 20 for name, text in CAROL.items()}
    with running_model_server(dimensions=16) as server:
        model = f"{{model: test-embedding, base_url: '{server.base_url}', batch_max_tokens: 300}}"
        root = built_root(tmp_path, long, settings + model, stages=ALL_STAGES)
        server.reset()
        found = check_in_dagster(root)["averaged_cosine"]
        averaged = read_embedding_figures(root)["averaged_vectors"]
        assert not server.calls, "only stored vectors are compared"
    assert found.metadata["value"].value == pytest.approx(averaged["mean_cosine"], abs=1e-4)
    assert not found.passed and found.severity == dg.AssetCheckSeverity.WARN
    assert f"{averaged['n_compared']} texts" in found.description and "text_units.size" in found.description
    assert found.metadata["threshold"].value == "at least 1"


def test_checks_in_dagster_warn_and_block_nothing(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setenv("GRAPHRAG__QUALITY__MIN_TYPE_ENTROPY", "9")
    found = check_in_dagster(Root(root.path))
    assert set(found) == set(FIGURES) and not any(check.blocking for check in found.values())
    low = found["type_entropy"]
    assert (
        not low.passed and low.severity == dg.AssetCheckSeverity.WARN and "extraction.entity_types" in low.description
    )
    assert found["valid_citations"].passed and found["valid_citations"].metadata["value"].value == 1.0


def test_an_unreadable_snapshot_warns_instead_of_failing_the_run(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    (root.path / "prompts" / "community_report.txt").write_text("no placeholder")
    found = check_in_dagster(Root(root.path))
    assert not any(check.passed for check in found.values())
    assert "the placeholder {input_text} is missing" in (found["singletons"].description or "")


def test_a_model_that_finds_one_entity_a_text_unit_is_shown_beside_the_rules(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reply(request: ReceivedRequest) -> str | None:
        return POOR if "knowledge graph" in request.prompt else None

    with running_model_server(reply) as server:
        monkeypatch.setenv(KEY_VARIABLE, KEY)
        extraction = {"max_gleanings": 0, "only_names_in_text": False}
        made = make_model_root(tmp_path / "root", server.base_url, 3, extraction=extraction)
        build_tables(made, tuple(ALL_STAGES))
        n_calls = server.count()
        monkeypatch.setenv(KEY_VARIABLE, KEY)
        found = figures_of(call("--root", made.path, "evaluate", "--index", "--json"))
        assert server.count() == n_calls, "measuring calls no model"
    ratio = found["engine_ratio"]
    assert (
        ratio["is_warning"]
        and ratio["value"] < 0.5
        and ratio["note"].startswith("1.0 entities a text unit by test-chat")
    )
    assert len(ratio["examples"]) == 5


HEAD = {"data_version": "d", "code_version": "c", "inputs": {}}
ENTITIES = st.dictionaries(st.sampled_from("abcdef"), st.frozensets(st.sampled_from("uvwxyz"), min_size=1), max_size=5)


@pytest.fixture(scope="module")
def by_model(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """The small index, extracted by the model `tiny`."""
    tables, embedder = contract_tables(), load_static_embeddings()
    vectors = {
        name: embedder.embed(["x"] * tables[table].num_rows) for name, (table, _) in VECTOR_TABLES.items()
    }  # not searched here
    store = SnapshotStore(tmp_path_factory.mktemp("by_model"))
    heads, code = {"entity_mentions/000": HEAD}, {"c": {"extraction model": "tiny"}}
    return store.open(freeze_candidate(store, tables, vectors, embedder.fingerprint, heads=heads, code=code))


@pytest.fixture
def embedded(tmp_path: Path) -> Extractor:
    return load_port("extractor")(make_root(tmp_path / "root"))


def test_the_stored_entities_of_a_model_are_counted_beside_those_of_the_embedded_engine(
    by_model: Snapshot, embedded: Extractor
) -> None:
    ratio, overlap = compare_engines(by_model, embedded, 25)
    assert (ratio.n, overlap.note) == (3, "5 of 6 entities of tiny")
    assert overlap.examples == ("FOG",), "a common word is no name"
    assert overlap.value == 5 / 6 and not overlap.is_low(QualitySettings())
    assert ratio.note.startswith("2.0 entities a text unit by tiny, ")


def test_the_sample_and_the_characters_read_are_bounded(
    by_model: Snapshot, embedded: Extractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def n_compared(n: int) -> int:
        return compare_engines(by_model, embedded, n)[0].n

    assert [n_compared(n) for n in (0, 2, 25)] == [0, 2, 3]
    monkeypatch.setattr(measurement, "MAX_CHARACTERS", 1)
    assert n_compared(25) == 1


def test_entities_match_by_any_written_name_and_within_a_text_unit_only() -> None:
    theirs, ours = {"A": {"bob cratchit", "bob"}}, {"B": {"bob"}}
    assert measure_agreement("m", [(theirs, ours)])[1].value == 1
    assert measure_agreement("m", [(theirs, {}), ({}, ours)])[1].value == 0


@given(st.lists(st.tuples(ENTITIES, ENTITIES), min_size=1, max_size=5))
def test_shared_entities_never_exceed_either_engine_and_swap_with_them(units) -> None:
    (ratio, overlap), (turned, other) = (
        measure_agreement("m", units),
        measure_agreement("m", [(b, a) for a, b in units]),
    )
    assert not ratio.value or not turned.value or ratio.value * turned.value == pytest.approx(1)
    assert all(figure.value is None or 0 <= figure.value <= 1 for figure in (overlap, other))
    assert bool(overlap.value) == bool(other.value) and overlap.examples == turned.examples
