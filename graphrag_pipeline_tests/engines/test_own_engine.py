"""An engine of another package: found by its entry point, chosen by a setting, part of the code version."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from graphrag_pipeline_tests.support.paths import REPOSITORY
from graphrag_pipeline_tests.support.roots import make_root

GUIDE = (REPOSITORY / "docs" / "guides" / "engines.md").read_text(encoding="utf-8")
[MODULE] = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
[DECLARED] = re.findall(r'^"(tickets\.extractor)" = "(.+)"$', GUIDE, re.MULTILINE)


def install(folder: Path, module: str) -> None:
    """Lay down what `pip install` does for a package of one module with the entry point of the guide."""
    (folder / "tickets.py").write_text(module, encoding="utf-8")
    metadata = folder / "tickets-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: tickets\nVersion: 1.0\n", encoding="utf-8")
    entry = f"[graphrag_pipeline.engines]\n{DECLARED[0]} = {DECLARED[1]}\n"
    (metadata / "entry_points.txt").write_text(entry, encoding="utf-8")


def run(root: Path, site: Path | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(site or ""), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-m", "graphrag_pipeline", "--root", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    install(folder, MODULE)
    return folder


def test_the_engine_of_the_guide_extracts_and_its_version_makes_the_index_stale(tmp_path: Path, site: Path) -> None:
    texts = {"a.txt": "OPS-118 follows OPS-97.", "b.txt": "The fix for OPS-97 is in review."}
    root = make_root(tmp_path / "root", texts).path
    (root / "settings.yaml").write_text("extraction: {engine: tickets}", encoding="utf-8")
    indexed = run(root, site, "index")
    assert indexed.returncode == 0, indexed.stderr
    [titles] = [pq.read_table(path, columns=["title"])["title"].to_pylist()
                for path in (root / "snapshots" / "tables" / "entities").glob("*.parquet")]  # fmt: skip
    assert set(titles) == {"OPS-118", "OPS-97"}
    assert "everything is fresh" in run(root, site, "status").stdout
    (site / "tickets.py").write_text(MODULE.replace('"tickets": 1', '"tickets": 2'), encoding="utf-8")
    assert "tickets" in run(root, site, "status").stdout


def test_an_engine_that_is_not_installed_is_named_with_those_that_are(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root").path
    (root / "settings.yaml").write_text("extraction: {engine: tickets}", encoding="utf-8")
    failed = run(root, None, "status")
    assert failed.returncode == 1 and "Traceback" not in failed.stderr
    assert "`tickets` is not an installed engine" in failed.stderr and "embedded or model" in failed.stderr
