"""`evaluate --index` and Dagster's checks on indexes of both engines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

from graphrag_pipeline.defs.assets.checks import of_quality
from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.evaluation.index_quality.figures import FIGURES
from graphrag_pipeline.evaluation.index_quality.measurement import measure_quality
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, SNAPSHOT
from graphrag_pipeline_tests.model_server import ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.command_line import Outcome, assert_one_line_error
from graphrag_pipeline_tests.support.models.model_roots import KEY, KEY_VARIABLE, make_model_root
from graphrag_pipeline_tests.support.roots import build_tables
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


def test_options_of_questions_are_refused(root: Root, call: Call) -> None:
    refused = call("--root", root.path, "evaluate", "--index", "--methods", "bm25")
    assert refused.status == 2 and "--methods" in refused.err
    assert "needs --index" in call("--root", root.path, "evaluate", "--fail-on-warnings").err


def test_an_unpublished_root_is_refused(tmp_path: Path, call: Call) -> None:
    (tmp_path / "settings.yaml").write_text("")
    assert_one_line_error(call("--root", tmp_path, "evaluate", "--index"), "no published index")


def test_metadata_names_figures_in_words_and_rounds_them(root: Root) -> None:
    shown = of_quality(root, str(root.snapshots.current()))
    assert "quality: share of entities without a relationship" in shown
    assert all(round(value, 4) == value for value in shown.values())


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
