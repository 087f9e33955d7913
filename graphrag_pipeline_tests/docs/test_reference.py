"""The generated reference names everything that the code has, and the documentation builds strictly."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import graphrag_pipeline
from graphrag_pipeline.models.prompts import PROMPT_NAMES
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.publishing.checks import CHECKS, POLICY_CHECKS
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.tables import CONTRACT_TABLES, STAGE_TABLES
from graphrag_pipeline_tests.support.command_line import Call
from graphrag_pipeline_tests.support.documentation.doc_pages import DOCS

REFERENCE = DOCS / "reference"


@pytest.fixture(scope="module")
def generators() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference_pages", DOCS / "_extensions" / "reference_pages.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def filled(page: str, generators: ModuleType) -> str:
    return str(generators.fill((REFERENCE / f"{page}.md").read_text(encoding="utf-8")))


def test_every_command_of_the_help_is_in_the_reference_with_its_options(generators: ModuleType, call: Call) -> None:
    text = filled("commands", generators)
    for command in ("init", "index", "status", "query", "snapshots rollback"):
        assert f"\n## {command}\n" in text
        shown = call(*command.split(), "--help").out
        section = text.partition(f"\n## {command}\n")[2].partition("\n## ")[0]
        options = set(re.findall(r"^│ +\*? *(--[a-z-]+)", shown, re.MULTILINE)) - {"--help"}
        assert options and [option for option in sorted(options) if f"`{option}`" not in section] == []


def test_every_option_of_the_settings_has_its_default_and_its_variable(generators: ModuleType) -> None:
    text = filled("settings", generators)
    for section, field in Settings.model_fields.items():
        part = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
        for option in type(field.default).model_fields:
            assert f"\n`{option}` (" in part, (section, option)
            assert f"`GRAPHRAG__{section}__{option}`".upper() in part.upper()
    assert "`size` (whole number, " in text
    assert "default `1200`" in text


def test_every_table_and_column_is_described(generators: ModuleType) -> None:
    text = filled("tables", generators)
    headings = {**CONTRACT_TABLES, **{f"stage_{name}": table for name, table in STAGE_TABLES.items()}}
    for heading, table in headings.items():
        part = text.partition(f"\n### {heading}\n")[2].partition("\n### ")[0]
        for column in table.schema.names:
            assert f"\n| `{column}` | " in part, (heading, column)
    assert "|  |" not in text


def test_every_asset_job_and_check_is_described(generators: ModuleType) -> None:
    text = filled("assets", generators)
    assert [name for name in ALL_STAGES if f"\n### {name}\n" not in text] == []
    assert [name for name in (*CHECKS, *POLICY_CHECKS) if f"\n`{name}`\n: " not in text] == []
    for job in ("index_bucket", "graph_and_later", "reindex_stale", "local_search_job", "batch_job", "evaluation_job"):
        assert f"\n`{job}`\n: " in text
    assert "(no description)" not in text


def test_every_prompt_has_its_placeholders_and_its_text(generators: ModuleType) -> None:
    text = filled("prompts", generators)
    assert [name for name in PROMPT_NAMES if f"\n## {name}\n" not in text] == []
    assert "Required placeholders: `{input_text}`" in text


def test_every_exported_name_is_documented(generators: ModuleType) -> None:
    text = filled("python", generators)
    assert [name for name in graphrag_pipeline.__all__ if f"\n### {name}\n" not in text] == []


@pytest.mark.thorough
def test_the_documentation_builds_without_a_warning_and_without_a_network(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "sphinx", "-E", "-W", "--keep-going", "-n", "-q", "-b", "html", str(DOCS)]
    built = subprocess.run([*program, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    assert '"Changelog"' not in (tmp_path / "searchindex.js").read_text(encoding="utf-8")
    assert "guides" in (tmp_path / "_static" / "language_data.js").read_text(encoding="utf-8"), "no search scorer"
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for tag in ('<script src="http', '<link rel="stylesheet" type="text/css" href="http', "@import url(http"):
            assert tag not in text, page


def test_the_summary_of_the_audit_counts_the_rows_below_it(generators: ModuleType) -> None:
    lines = filled("audit", generators).splitlines()
    shown = [[int(cell) for cell in line.split("|")[2:7]] for line in lines if re.search(r"(\| \d+ ){5}\|", line)]
    rows = [line for line in lines if re.match(r"\| [A-F]\d+ \|", line)]
    total, parts = shown[-1], shown[:-1]
    assert total == [sum(column) for column in zip(*parts, strict=True)]
    assert total[0] == len(rows) == sum(total[1:])
    assert total[1] == sum(line.endswith("| works |") for line in rows)
