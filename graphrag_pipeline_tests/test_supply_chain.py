"""The audit of dependencies, on a package that is installed into a folder as pip would."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest

from graphrag_pipeline_tests.support.supply_chain import check_installed, list_vulnerabilities, read_pins, run_pip_audit

CODE = b"ANSWER = 42\n"


@pytest.fixture
def installed(tmp_path: Path) -> Callable[[], list[Distribution]]:
    digest = base64.urlsafe_b64encode(hashlib.sha256(CODE).digest()).rstrip(b"=").decode()
    metadata = tmp_path / "Some_Package-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: Some_Package\nVersion: 1.2\n")
    (metadata / "RECORD").write_text(
        f"some_package.py,sha256={digest},{len(CODE)}\nSome_Package-1.2.dist-info/RECORD,,\n"
    )
    (tmp_path / "some_package.py").write_bytes(CODE)
    return lambda: list(distributions(path=[str(tmp_path)]))


def test_a_package_as_pinned_has_no_finding(installed: Callable[[], list[Distribution]]) -> None:
    assert check_installed(installed(), {"some-package": "1.2"}) == []


def test_another_version_and_a_missing_pin_are_told(installed: Callable[[], list[Distribution]]) -> None:
    assert check_installed(installed(), {"some-package": "1.3"}) == ["some-package 1.2: pinned is 1.3"]
    assert check_installed(installed(), {}) == ["some-package 1.2: pinned is no version"]


def test_a_changed_file_is_told(installed: Callable[[], list[Distribution]], tmp_path: Path) -> None:
    (tmp_path / "some_package.py").write_bytes(CODE.replace(b"42", b"43"))
    assert check_installed(installed(), {"some-package": "1.2"}) == [
        "some-package 1.2: some_package.py was changed after the install"
    ]


def test_a_missing_file_is_told(installed: Callable[[], list[Distribution]], tmp_path: Path) -> None:
    (tmp_path / "some_package.py").unlink()
    assert check_installed(installed(), {"some-package": "1.2"}) == ["some-package 1.2: some_package.py is missing"]


def test_pins_are_read_under_normalized_names(tmp_path: Path) -> None:
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("# tested together\nSome_Package==1.2\nother.one==3  # why\n")
    assert read_pins(constraints) == {"some-package": "1.2", "other-one": "3"}


def test_vulnerabilities_and_packages_not_looked_up_are_told() -> None:
    report = {
        "dependencies": [
            {"name": "sound", "version": "1", "vulns": []},
            {"name": "weak", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"]}]},
            {"name": "unknown", "skip_reason": "not found"},
            {"name": "graphrag-pipeline", "skip_reason": "not found"},
        ]
    }
    assert list_vulnerabilities(report) == ["weak 2: PYSEC-1; fixed in: 2.1", "unknown: not found"]


@pytest.mark.parametrize("printed", ["", "no JSON", '{"dependencies": [{"name": "a", "skip_reason": "not found"}]}'])
def test_an_audit_that_looked_nothing_up_is_none(tmp_path: Path, printed: str) -> None:
    auditor = tmp_path / "pip-audit"
    auditor.write_text(f"#!/bin/sh\necho '{printed}'\nexit 1\n")
    auditor.chmod(0o755)
    assert run_pip_audit(str(auditor)) is None
