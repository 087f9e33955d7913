"""Test of the Dagster component in a project of `dg`, with two indexes and an asset of the user's own."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pydantic import ValidationError

from graphrag_pipeline.component import GraphRagIndex
from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.support.command_line import environment
from graphrag_pipeline_tests.support.roots import make_root, put

PYPROJECT = """[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "shop"
registry_modules = ["graphrag_pipeline.component"]
"""
DEFINITIONS = """from pathlib import Path

import dagster as dg


@dg.definitions
def defs() -> dg.Definitions:
    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
"""
OWN_ASSET = """import dagster as dg


@dg.asset(deps=[dg.AssetKey(["news", "index_snapshot"])])
def weekly_digest() -> None: ...
"""
YAML = """type: graphrag_pipeline.component.GraphRagIndex
attributes:
  root: {root}
  key_prefix: [news]
"""
Dg = Callable[..., str]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of `dg` with an asset of its own."""
    files = {
        "pyproject.toml": PYPROJECT,
        "src/shop/__init__.py": "",
        "src/shop/definitions.py": DEFINITIONS,
        "src/shop/defs/__init__.py": "",
        "src/shop/defs/digest.py": OWN_ASSET,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "home").mkdir()
    return tmp_path


@pytest.fixture
def run_dg(project: Path) -> Dg:
    """A function that runs `dg` in the project and returns its standard output."""
    program = Path(sys.executable).with_name("dg")
    if not program.exists():
        pytest.skip("dg is not installed")
    path = os.pathsep.join([environment()["PYTHONPATH"], str(project / "src")])
    variables = environment(PYTHONPATH=path, DAGSTER_HOME=str(project / "home"), DAGSTER_DISABLE_TELEMETRY="1")
    variables["PATH"] = os.pathsep.join([str(program.parent), variables.get("PATH", "")])

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [program, *arguments], cwd=project, env=variables, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def build(root: Path, **attributes: object) -> dg.Definitions:
    """Return the definitions of the component for a root."""
    index = GraphRagIndex(root=str(root), **attributes)
    return index.build_defs(dg.ComponentTree.for_test().load_context)


@pytest.mark.thorough
def test_two_indexes_live_beside_the_assets_of_a_project(project: Path, run_dg: Dg) -> None:
    run_dg("scaffold", "defs", "graphrag_pipeline.component.GraphRagIndex", "news")
    make_root(project / "indexes" / "wiki")
    shutil.copytree(project / "src" / "shop" / "defs" / "news", project / "src" / "shop" / "defs" / "wiki")
    yaml = project / "src" / "shop" / "defs" / "wiki" / "defs.yaml"
    yaml.write_text(yaml.read_text().replace("news", "wiki"))
    put(project / "indexes" / "news", "a.txt", "Alice Moor met Bob Lund in Brantwick. Bob Lund works at Moor Mills.")
    checked = run_dg("check", "defs")
    assert "YAML validated successfully" in checked and "All definitions loaded successfully" in checked
    listed = json.loads(run_dg("list", "defs", "--json"))
    assets = {asset["asset_key"]: asset for asset in listed["assets"]}
    assert {"news/graph", "wiki/graph", "news/answers", "wiki/input_folder", "weekly_digest"} <= assets.keys()
    assert assets["weekly_digest"]["dependency_keys"] == ["news/index_snapshot"]
    assert assets["wiki/index_snapshot"]["group_name"] == "wiki_publish"
    assert {f"{name}_reindex_stale" for name in ("news", "wiki")} <= {job["name"] for job in listed["jobs"]}
    assert {"wiki_input_folder_sensor", "news_notify_failure"} <= {each["name"] for each in listed["sensors"]}

    run_dg("launch", "--job", "news_reindex_stale")
    question = {"question": "Where does Bob Lund work?"}
    job = build(project / "indexes" / "news", key_prefix=["news"]).resolve_job_def("news_basic_search_job")
    with dg.DagsterInstance.from_config(str(project / "home")) as instance:
        assert job.execute_in_process(question, instance=instance).success
        made = {key.to_user_string() for key in instance.all_asset_keys()}
        answer = instance.get_latest_materialization_event(dg.AssetKey(["news", "answers"]))
    assert {key.partition("/")[0] for key in made} == {"news"}
    assert answer and answer.asset_materialization
    assert "Moor Mills" in str(answer.asset_materialization.metadata["answer"].value)
    assert Root(project / "indexes" / "wiki").snapshots.current() is None


def test_a_group_holds_all_assets(tmp_path: Path) -> None:
    definitions = build(make_root(tmp_path).path, key_prefix=["shop", "news"], group_name="search")
    specs = list(definitions.resolve_all_asset_specs())
    assert {spec.group_name for spec in specs} == {"search"}
    assert {tuple(spec.key.path[:2]) for spec in specs} == {("shop", "news")}


def test_without_a_prefix_names_are_those_of_the_guide(tmp_path: Path) -> None:
    definitions = build(make_root(tmp_path).path)
    assert {job.name for job in definitions.resolve_all_job_defs()} >= {"reindex_stale", "auto_search_job"}
    assert "graph" in {spec.key.to_user_string() for spec in definitions.resolve_all_asset_specs()}


def test_a_misspelt_key_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"key_prefx\n  `key_prefx` is not a key .* did you mean `key_prefix`\?"):
        GraphRagIndex.from_attributes_dict(attributes={"root": str(tmp_path), "key_prefx": ["news"]})
    with pytest.raises(ValidationError, match="known keys are root, key_prefix, group_name"):
        GraphRagIndex.from_attributes_dict(attributes={"root": str(tmp_path), "zzz": 1})


def test_a_prefix_may_be_a_text_and_only_of_signs_that_a_name_may_have(tmp_path: Path) -> None:
    definitions = build(make_root(tmp_path).path, key_prefix="shop/news")
    assert "shop/news/graph" in {spec.key.to_user_string() for spec in definitions.resolve_all_asset_specs()}
    with pytest.raises(SettingsError, match=r"'my-news' cannot begin the name of a job; use letters, digits and _"):
        build(tmp_path, key_prefix=["my-news"])


def test_two_indexes_with_one_prefix_are_refused_with_both_roots(project: Path, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(project / "src")
    for name in ("news", "wiki"):
        make_root(project / "indexes" / name)
        folder = project / "src" / "shop" / "defs" / name
        folder.mkdir()
        (folder / "defs.yaml").write_text(YAML.format(root=project / "indexes" / name))
    with pytest.raises(Exception, match="Error while") as caught:
        dg.ComponentTree.for_project(project).build_defs()
    assert isinstance(caught.value.__cause__, SettingsError)
    assert "is that of 2 indexes" in str(caught.value.__cause__)
    assert all(str(project / "indexes" / name) in str(caught.value.__cause__) for name in ("news", "wiki"))


def test_a_folder_without_settings_is_refused_with_the_command_that_makes_a_root(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"has no settings.yaml; name the folder .* `graphrag-pipeline init /"):
        build(tmp_path / "nowhere")
