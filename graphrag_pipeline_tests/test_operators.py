"""The guides for operators: their sequences run as shown, and the intended programs read their files."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from graphrag_pipeline.cli import app
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.storage.dagster_home import DAGSTER_YAML
from graphrag_pipeline.storage.vectors import registered_vector_stores
from graphrag_pipeline_tests.bench.articles import write_articles
from graphrag_pipeline_tests.model_server import ModelServer, running_model_server
from graphrag_pipeline_tests.support.command_line import Call, Outcome
from graphrag_pipeline_tests.support.documentation.doc_pages import DOCS, find_sequence, read_stories
from graphrag_pipeline_tests.support.models.model_roots import (
    KEY,
    KEY_VARIABLE,
    ModelIndex,
    make_model_root,
    other_reports,
)
from graphrag_pipeline_tests.support.paths import REPOSITORY
from graphrag_pipeline_tests.support.roots import build_tables, contract_bytes

PAGES = tuple(DOCS / "guides" / f"{name}.md" for name in ("operations", "object_store", "deployment"))


def blocks_of(language: str) -> list[str]:
    """The fenced blocks of a language on the pages for operators, in order."""
    stories = (story for page in PAGES for story in read_stories(page))
    return [block.text for story in stories for block in story.blocks if block.language == language]


class Operator:
    """Runs the lines of a page in a folder that holds `root`: our commands in this process, the rest in a shell."""

    def __init__(self, folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._call = call
        self._monkeypatch = monkeypatch
        monkeypatch.chdir(folder)

    def run(self, name: str, **named: str) -> dict[str, Outcome]:
        """Run a sequence, in which `named` words stand for others; what each of our commands gave, by its line.

        A line with the comment "exit status 1" without an "if" must exit so, every other one with 0.
        """
        outcomes = {}
        for line in find_sequence(name):
            words, _, comment = line.partition("#")
            for word, value in {"my_root": "root", **named}.items():
                words = words.replace(word, value)
            expected = int("exit status 1" in comment and " if " not in comment)
            outcome = self._run_line(words)
            if outcome is not None:
                assert outcome.status == expected, (words, outcome)
                key = " ".join(shlex.split(words)[3:])
                outcomes[f"{key} again" if key in outcomes else key] = outcome
        return outcomes

    def _run_line(self, words: str) -> Outcome | None:
        if words.startswith("graphrag-pipeline "):
            return self._call(*shlex.split(words)[1:])
        if words.startswith("export "):
            self._monkeypatch.setenv(*words.removeprefix("export ").strip().split("="))
            return None
        subprocess.run(words, shell=True, cwd=self.folder, check=True)
        return None


@pytest.fixture
def operator(model_index: ModelIndex, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> Operator:
    monkeypatch.setenv(KEY_VARIABLE, KEY)  # `call` takes our variables away
    return Operator(tmp_path, call, monkeypatch)


def _add_articles(index: ModelIndex, n_articles: int) -> None:
    """More articles than the six that are indexed."""
    write_articles(index.root.path / "input", n_articles)


def test_daily_reindex(operator: Operator, model_index: ModelIndex) -> None:
    _add_articles(model_index, 7)
    outcomes = operator.run("daily_reindex")
    assert outcomes["index"].out.startswith("7 documents: ")
    assert "everything is fresh" in outcomes["status"].out
    assert "index" in outcomes["costs"].out and "spent: " in outcomes["costs"].out


def test_the_crontab_line_runs_the_command_of_the_sequence() -> None:
    from dagster._utils.schedules import is_valid_cron_string

    [line] = blocks_of("crontab")
    assert is_valid_cron_string(" ".join(line.split()[:5]))
    assert "graphrag-pipeline --root /srv/my_root index >>" in line


@pytest.mark.thorough
def test_backfill_after_a_changed_prompt(operator: Operator, model_index: ModelIndex) -> None:
    model_index.script = other_reports
    before = model_index.root.snapshots.current()
    outcomes = operator.run("backfill")
    assert "stale community_reports: prompt community_report changed" in outcomes["status"].out
    assert "stale extracted_graph" not in outcomes["status"].out
    tried = outcomes["try community_reports --sample 2"].out
    assert tried.startswith("community_reports: 2 of ") and "2 of 2 changed" in tried
    [planned] = [line for line in outcomes["index --dry-run"].out.splitlines() if line.startswith("community_reports ")]
    assert planned.split()[2] == "2"  # cached
    assert {call.kind for call in model_index.server.calls} == {"report", "embedding"}
    assert model_index.server.log.repeated_keys() == []
    assert str(before) in outcomes["snapshots list"].out and model_index.root.snapshots.current() != before


def test_budget(operator: Operator, model_index: ModelIndex) -> None:
    spent = model_index.root.models.spending.total()[0]
    n_units = model_index.root.snapshots.open().n_rows("text_units")
    _add_articles(model_index, 8)
    outcomes = operator.run("budget", CEILING=str(spent + spent // n_units), RAISED=str(spent * 10))
    assert "budget" in outcomes["index"].err
    assert outcomes["index again"].out.startswith("8 documents: ")
    assert model_index.server.log.repeated_keys() == []


@pytest.mark.thorough
def test_another_machine(operator: Operator, model_index: ModelIndex) -> None:
    outcomes = operator.run("another_machine")
    assert "everything is fresh" in outcomes["status"].out
    assert "nothing changed" in outcomes["index"].out
    assert model_index.server.count() == model_index.server.count("embedding") <= 1  # of the question
    moved = Root(operator.folder / "there")
    assert contract_bytes(moved) == contract_bytes(model_index.root)
    with open_instance(moved) as instance:
        from dagster import AssetKey

        event = instance.get_latest_materialization_event(AssetKey("index_snapshot"))
    assert event is not None
    place = os.fsencode(model_index.root.path)
    ours = (path for name in ("tables", "heads", "snapshots", "cache") for path in (moved.path / name).rglob("*"))
    assert not [path for path in ours if path.is_file() and place in path.read_bytes()]


@pytest.mark.thorough
def test_another_number_of_buckets(operator: Operator, model_index: ModelIndex, call: Call) -> None:
    published = contract_bytes(model_index.root)
    outcomes = operator.run("another_bucket_count", **{"16": "3"})
    refused = outcomes["index"].err
    assert "storage.n_buckets is 3" in refused and "was built with 2" in refused and "/tables` and " in refused
    assert model_index.server.count() == 0
    assert Root(model_index.root.path).settings.storage.n_buckets == 3
    assert contract_bytes(Root(model_index.root.path)) == published


@pytest.mark.thorough
def test_the_index_in_an_object_store(operator: Operator, model_index: ModelIndex, s3_url: str) -> None:
    outcomes = operator.run("shared_store", **{"s3://bucket/index": s3_url})
    assert "nothing changed" in outcomes["index"].out and "nothing changed" in outcomes["index again"].out
    assert model_index.server.count() == model_index.server.count("embedding") <= 1  # of the question
    assert contract_bytes(Root(operator.folder / "there")) == contract_bytes(Root(model_index.root.path))


def test_the_settings_shown_are_settings() -> None:
    shown = [Settings.model_validate(yaml.safe_load(b)) for b in blocks_of("yaml") if b.startswith("# settings.yaml")]
    assert [settings.input.place(Path("/data")) for settings in shown] == ["s3://bucket/docs", Path("/data/input")]
    assert [settings.storage.url for settings in shown] == [None, "s3://bucket/index"]


def _dagster_yaml() -> str:
    [text] = [block for block in blocks_of("yaml") if "dagster.yaml" in block.partition("\n")[0]]
    return DAGSTER_YAML + text


def test_dagster_takes_the_settings_shown_for_its_home(tmp_path: Path) -> None:
    from dagster._core.instance.config import dagster_instance_config

    (tmp_path / "dagster.yaml").write_text(_dagster_yaml())
    values, _ = dagster_instance_config(str(tmp_path))
    assert values["storage"] == {"postgres": {"postgres_url": {"env": "DAGSTER_POSTGRES_URL"}}}


def _assert_is_dagster_command(program: str, *arguments: str) -> None:
    """Fail unless an installed program takes these arguments."""
    from dagster._daemon.cli import create_dagster_daemon_cli
    from dagster_webserver.cli import create_dagster_webserver_cli

    assert program in {script.name for script in importlib.metadata.entry_points(group="console_scripts")}
    if program == "dagster-daemon":
        group = create_dagster_daemon_cli()
        assert group.commands[arguments[0]].make_context(program, list(arguments[1:]))
    else:
        assert program == "dagster-webserver"
        assert create_dagster_webserver_cli().make_context(program, list(arguments))


def test_the_image_installs_extras_that_exist_and_starts_programs_that_exist() -> None:
    [dockerfile] = blocks_of("dockerfile")
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    [extras] = re.findall(r"/src\[([a-z,]+)\]", dockerfile)
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert (REPOSITORY / "constraints.txt").is_file()
    [command] = re.findall(r"^CMD (\[.*\])$", dockerfile, re.MULTILINE)
    _assert_is_dagster_command(*yaml.safe_load(command))
    [variables] = re.findall(r"^ENV (.*)$", dockerfile, re.MULTILINE)
    assert dict(pair.split("=") for pair in variables.split()) == {
        "GRAPHRAG_ROOT": "/data",
        "DAGSTER_HOME": "/data/dagster",
    }


def test_the_citation_names_this_version() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))["version"] == project["version"]


def test_the_image_has_no_finding_of_the_linter() -> None:
    [dockerfile] = blocks_of("dockerfile")
    program = Path(sys.executable).with_name("hadolint")
    linted = subprocess.run([program, "--no-color", "-"], input=dockerfile, capture_output=True, text=True, timeout=60)
    assert linted.returncode == 0 and not linted.stdout, linted.stdout + linted.stderr


def test_the_services_start_programs_that_exist_with_the_variables_that_are_read() -> None:
    [text] = [block for block in blocks_of("yaml") if block.startswith("# compose.yaml")]
    services: Mapping[str, Any] = yaml.safe_load(text)["services"]
    _assert_is_dagster_command(*services["daemon"]["command"])
    program, command, *options = services["api"]["command"]
    commands = typer.main.get_command(app)
    assert program == "graphrag-pipeline" and commands.commands[command].make_context(command, options)  # type: ignore[attr-defined]
    for name in ("ui", "daemon", "api"):
        variables = services[name]["environment"]
        assert variables["DAGSTER_POSTGRES_URL"].startswith("postgresql+psycopg2://")
        assert {"OPENAI_API_KEY", "GRAPHRAG__STORAGE__CACHE_URL", "PGVECTOR_URL"} <= set(variables)
        assert variables["GRAPHRAG__VECTOR_STORE__KIND"] in registered_vector_stores()


@pytest.fixture
def databases(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty database for the cache and Dagster together; its URL."""
    from sqlalchemy import make_url

    dagsters = make_url(postgres_url).set(drivername="postgresql+psycopg2")
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", dagsters.render_as_string(hide_password=False))
    return postgres_url


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with running_model_server() as running:
        yield running


def test_cache_dagster_and_vectors_live_in_one_postgresql(
    databases: str, server: ModelServer, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.setenv("PGVECTOR_URL", databases)
    monkeypatch.setenv("GRAPHRAG__VECTOR_STORE__KIND", "pgvector")
    root = make_model_root(tmp_path / "root", server.base_url, n_articles=2, storage={"cache_url": databases})
    (root.path / "dagster" / "dagster.yaml").write_text(_dagster_yaml())
    unused = {path: path.read_bytes() for path in root.path.rglob("*.db")}  # `init` made them
    first = call("--root", root.path, "index")
    assert first.status == 0, first
    n_calls, published = server.count(), contract_bytes(root)
    for name in ("tables", "heads"):
        shutil.rmtree(root.path / name)
    build_tables(Root(root.path), ALL_STAGES)
    assert n_calls == server.count() > 0
    assert contract_bytes(root) == published
    assert not list(root.path.rglob("*.sqlite")) and not list(root.path.rglob("*.lance"))
    assert {path: path.read_bytes() for path in root.path.rglob("*.db")} == unused
