"""The scaffold that the Launchpad shows of each job: every option with its value, and nothing of the root itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.snap import JobSnap
from dagster._core.snap.snap_to_yaml import default_values_yaml_from_type_snap
from dagster_shared.yaml_utils import load_run_config_yaml

from graphrag_pipeline.defs.jobs.batch import build_batch_job
from graphrag_pipeline.defs.jobs.evaluation import build_evaluation_job
from graphrag_pipeline.defs.jobs.queries import EXAMPLE_QUESTION, OPTIONS, build_query_jobs, question_config
from graphrag_pipeline.defs.jobs.stale_report import build_stale_report
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline_tests.support.roots import make_root


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return make_root(tmp_path)


def scaffold(job: dg.JobDefinition) -> dict[str, Any]:
    """What the Launchpad shows at first, as the webserver renders it."""
    snap = JobSnap.from_job_def(job)
    schema, key = snap.config_schema_snapshot, snap.mode_def_snaps[0].root_config_key
    text = default_values_yaml_from_type_snap(schema, schema.get_config_snap(str(key)))
    return dict(load_run_config_yaml(text) or {})


def test_a_scaffold_shows_every_option_that_has_a_value(root: Root) -> None:
    for method, job in zip(METHODS.values(), build_query_jobs(root), strict=True):
        shown = scaffold(job)
        section = Settings().search(method.name).model_dump(mode="json", exclude={"for_questions"})
        strategy = {"strategy": shown["strategy"]} if "strategy" in shown else {}
        assert shown[OPTIONS] | strategy == {name: value for name, value in section.items() if value is not None}
        assert shown["question"] == EXAMPLE_QUESTION and shown["filters"] == []


def test_defaults_are_the_settings_of_the_root(root: Root) -> None:
    text = (
        "local_search: {strategy: graph, top_k_entities: 7, for_questions: {now: 2024-05-01}}\n"
        "auto_search: {methods: [basic, lazy]}\n"
    )
    (root.path / "settings.yaml").write_text(f"{text}global_search: {{rated_text: summary}}\n")
    jobs = {job.name: scaffold(job) for job in build_query_jobs(Root(root.path))}
    assert jobs["local_search_job"]["strategy"] == "graph"
    shown = jobs["local_search_job"][OPTIONS]
    assert (shown["top_k_entities"], shown["now"]) == (7, "2024-05-01")
    assert jobs["auto_search_job"][OPTIONS]["methods"] == ["basic", "lazy"]
    assert jobs["global_search_job"][OPTIONS]["rated_text"] == "summary"


def test_other_jobs_have_one_place_too_and_no_launchpad_names_the_root(root: Root) -> None:
    assert scaffold(build_batch_job(root)) == {
        "questions": "questions.txt",
        "method": "auto",
        "filters": [],
        "concurrency": 4,
    }
    assert scaffold(build_evaluation_job(root)) == {"questions": "", "methods": [], "k": 5}
    assert scaffold(build_stale_report(root)) == {}


def test_every_option_is_described_with_its_bounds(root: Root) -> None:
    for method in METHODS.values():
        model = question_config(method, root.settings)
        options: Any = model.model_fields[OPTIONS].annotation
        for field in (*model.model_fields.values(), *options.model_fields.values()):
            assert field.description and field.description.endswith(".")
    text = str(options.model_fields["budget"].description)
    assert "at least 1" in text


def test_a_conversation_before_the_question_is_handed_on(root: Root) -> None:
    turn = {"role": "user", "content": "Who is Scrooge?"}
    (root.path / "settings.yaml").write_text(yaml.safe_dump({"local_search": {"conversation_history": [turn]}}))
    [job] = [job for job in build_query_jobs(Root(root.path)) if job.name == "local_search_job"]
    assert scaffold(job)[OPTIONS]["conversation_history"] == [turn]
