"""The scaffold that the Launchpad shows of each job: every option with its value, and nothing of the root itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.snap import JobSnap
from dagster._core.snap.snap_to_yaml import default_values_yaml_from_type_snap
from dagster_shared.yaml_utils import load_run_config_yaml

from graphrag_pipeline.defs.jobs.batch import build_batch_job
from graphrag_pipeline.defs.jobs.evaluation import build_evaluation_job
from graphrag_pipeline.defs.jobs.queries import EXAMPLE_QUESTION, OPTIONS, build_query_jobs, question_config
from graphrag_pipeline.defs.jobs.stale_report import build_stale_report
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.methods.method import SearchMethod
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline_tests.support.roots import built_root, make_root


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return make_root(tmp_path)


def scaffold(job: dg.JobDefinition) -> dict[str, Any]:
    """What the Launchpad shows at first, as the webserver renders it."""
    snap = JobSnap.from_job_def(job)
    schema, key = snap.config_schema_snapshot, snap.mode_def_snaps[0].root_config_key
    text = default_values_yaml_from_type_snap(schema, schema.get_config_snap(str(key)))
    return dict(load_run_config_yaml(text) or {})


def test_a_scaffold_is_five_lines_with_a_place_for_options(root: Root) -> None:
    for method, job in zip(METHODS.values(), build_query_jobs(root), strict=True):
        assert list(scaffold(job).items()) == [
            ("filters", []),
            ("method", method.name),
            ("question", EXAMPLE_QUESTION),
            ("snapshot", "published"),
            (OPTIONS, {}),
        ]


def test_a_search_for_words_is_asked_about_a_name_of_the_index_and_answers(tmp_path: Path) -> None:
    built = built_root(tmp_path / "root", stages=ALL_STAGES)
    questions = {job.name: scaffold(job)["question"] for job in build_query_jobs(built)}
    assert questions.pop("local_search_job") == questions.pop("basic_search_job") == "What is said about SCROOGE?"
    assert set(questions.values()) == {EXAMPLE_QUESTION}
    with GraphIndex.open(built.path) as index:
        assert index.search("What is said about SCROOGE?", method="local").citations


def test_options_name_the_value_of_the_settings(root: Root) -> None:
    (root.path / "settings.yaml").write_text("local_search: {top_k_entities: 7, for_questions: {now: 2024-05-01}}\n")
    options: Any = section_of(METHODS["local"], Root(root.path))
    assert "settings: 7" in options["top_k_entities"].description
    assert "settings: 2024-05-01" in options["now"].description


def section_of(method: SearchMethod, root: Root) -> Any:
    """The fields of a method's options."""
    model: Any = question_config(method, root.settings, "").model_fields[OPTIONS].annotation
    return model.__args__[0].model_fields


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
        options = section_of(method, root)
        for field in (*question_config(method, root.settings, "").model_fields.values(), *options.values()):
            assert field.description and field.description.endswith(".")
    assert "at least 1" in options["budget"].description


def test_run_configurations_of_before_are_accepted(root: Root) -> None:
    [job] = [job for job in build_query_jobs(root) if job.name == "local_search_job"]
    turn = {"role": "user", "content": "Who is Scrooge?"}
    options = {"top_k_entities": 3, "packing": "shared", "now": "2024-05-01", "conversation_history": [turn]}
    old = {
        "filters": [],
        "question": "Who?",
        "snapshot": None,
        "strategy": "graph",
        OPTIONS: {**options, "budget": None},
    }
    new = {"question": "Who?", "snapshot": "published", "method": "local", OPTIONS: {**options, "strategy": "graph"}}
    handed = [dg.validate_run_config(job, config)["ops"]["open_snapshot_for_local_search"]["config"]
              for config in (old, new)]  # fmt: skip
    assert handed[0] == handed[1]
    assert (handed[0]["strategy"], handed[0]["snapshot"], handed[0]["options"]) == ("graph", None, options)
    with pytest.raises(dg.DagsterInvalidConfigError, match=r"with_options\?: \{.*top_k_entities"):
        dg.validate_run_config(job, {"top_k_entities": 3})
