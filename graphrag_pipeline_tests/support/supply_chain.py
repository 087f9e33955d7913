"""Audit of the installed dependencies, a part of `make lint`.

    python -m graphrag_pipeline_tests.support.supply_chain CONSTRAINTS PIP_AUDIT

Known vulnerabilities come from pip-audit. Where its database cannot be reached, the audit says so and checks what can
be checked without a network: every installed package has the version that CONSTRAINTS pins, and its files have the
hashes that its own list of files (RECORD) gives.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

OWN_NAME = "graphrag-pipeline"
INSTALLERS = {"pip", "setuptools", "wheel"}
AUDIT_S = 120


def main() -> int:
    """Print the findings; 1 if there is any."""
    constraints, auditor = Path(sys.argv[1]), sys.argv[2]
    report = run_pip_audit(auditor)
    if report is None:
        print("audit: no vulnerability database can be reached; checking pinned versions and file hashes instead")
        findings = check_installed(distributions(), read_pins(constraints))
    else:
        print(f"audit: {len(report['dependencies'])} packages looked up for known vulnerabilities")
        findings = list_vulnerabilities(report)
    for finding in findings:
        print(f"audit: {finding}")
    if not findings:
        print("audit: nothing found")
    return int(bool(findings))


def run_pip_audit(auditor: str) -> dict[str, Any] | None:
    """Return pip-audit's report on this environment; None if no package could be looked up.

    `auditor` is the path of the program; it may live in an environment of its own. A mirror of the package registry
    often lacks the database: then every package is skipped, which is no audit.
    """
    paths = [argument for path in sys.path if path.endswith("site-packages") for argument in ("--path", path)]
    command = [auditor, "--format", "json", "--progress-spinner", "off", "--timeout", "5", *paths]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=AUDIT_S, check=False)
        report: dict[str, Any] = json.loads(ran.stdout)
    except (subprocess.TimeoutExpired, json.JSONDecodeError):
        return None
    return report if any("vulns" in each for each in report["dependencies"]) else None


def list_vulnerabilities(report: Mapping[str, Any]) -> list[str]:
    """Return a line for each known vulnerability, and for each package that was not looked up."""
    lines = []
    for package in report["dependencies"]:
        if reason := package.get("skip_reason"):
            if package["name"] != OWN_NAME:
                lines.append(f"{package['name']}: {reason}")
            continue
        for found in package["vulns"]:
            fixed = ", ".join(found["fix_versions"]) or "none yet"
            lines.append(f"{package['name']} {package['version']}: {found['id']}; fixed in: {fixed}")
    return lines


def read_pins(constraints: Path) -> dict[str, str]:
    """Return the version that a constraints file pins, per normalized package name."""
    lines = (line.split("#")[0].strip() for line in constraints.read_text().splitlines())
    return {_normalize(name): version for name, _, version in (line.partition("==") for line in lines if line)}


def check_installed(installed: Iterable[Distribution], pins: Mapping[str, str]) -> list[str]:
    """Return a line for each package without a pin or with another version, and for each changed or missing file."""
    lines = []
    for package in sorted(installed, key=lambda each: _normalize(each.name)):
        name = _normalize(package.name)
        if name == OWN_NAME or name in INSTALLERS:
            continue
        if package.version != pins.get(name):
            lines.append(f"{name} {package.version}: pinned is {pins.get(name, 'no version')}")
        lines += [f"{name} {package.version}: {file} {problem}" for file, problem in _check_files(package)]
    return lines


def _check_files(package: Distribution) -> Iterable[tuple[str, str]]:
    for file in package.files or ():
        if file.hash is None:
            continue
        path = Path(str(file.locate()))
        if not path.is_file():
            yield str(file), "is missing"
        elif _digest(path, file.hash.mode) != file.hash.value:
            yield str(file), "was changed after the install"


def _digest(path: Path, algorithm: str) -> str:
    with path.open("rb") as source:
        digest = hashlib.file_digest(source, algorithm).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.exit(main())
