"""The security page names a test for each threat, and each exists."""

from __future__ import annotations

import re

from graphrag_pipeline_tests.support.documentation.doc_pages import DOCS
from graphrag_pipeline_tests.support.paths import REPOSITORY

TESTS = REPOSITORY / "graphrag_pipeline_tests"
THREATS = [
    line
    for line in (DOCS / "explanation" / "security.md").read_text(encoding="utf-8").split("## Threats")[1].splitlines()
    if line.startswith("|") and not line.startswith(("| threat |", "|---"))
]


def test_each_threat_names_a_test_that_exists() -> None:
    assert len(THREATS) >= 7
    missing = []
    for line in THREATS:
        named = re.findall(r"`([\w/]+\.py)(?:::(test_\w+))?`", line)
        assert named, f"no test: {line}"
        missing += [f"{file}::{test}" for file, test in named if not _exists(file, test)]
    assert missing == []


def _exists(file: str, test: str) -> bool:
    path = TESTS / file
    return path.is_file() and (not test or f"def {test}(" in path.read_text(encoding="utf-8"))
