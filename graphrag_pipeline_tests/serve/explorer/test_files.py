"""The explorer's files: vendored ones are as pinned, ours make no HTML from text, and all of them are served."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest

from graphrag_pipeline_tests.support.paths import REPOSITORY
from graphrag_pipeline_tests.support.serving import RunningServer

FOLDER = REPOSITORY / "graphrag_pipeline" / "bundled" / "explorer"
VENDOR = FOLDER / "vendor"
OWN = sorted(path for path in FOLDER.rglob("*.js") if VENDOR not in path.parents)
HTML_SINKS = (
    *("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "dangerouslySetInnerHTML"),
    *("eval(", "srcdoc", "new Function", "setAttribute(", "createContextualFragment"),
)
MAX_LINES = 300


def test_vendored_files_are_those_that_were_pinned() -> None:
    pinned = json.loads((VENDOR / "vendored.json").read_text())["sha256"]
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VENDOR.iterdir()}
    found.pop("vendored.json")
    assert found == pinned


def test_each_vendored_package_has_its_version_and_licence() -> None:
    record = json.loads((VENDOR / "vendored.json").read_text())
    for package in record["packages"]:
        licence = (VENDOR / package["licence_file"]).read_text(encoding="utf-8")
        assert {"MIT": "Permission is hereby granted", "Apache-2.0": "Apache License"}[package["licence"]] in licence
        assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"]) and package["integrity"].startswith("sha512-")
    named = {package["file"] for package in record["packages"] if "file" in package}
    assert named == {path.name for path in VENDOR.iterdir() if path.suffix in (".js", ".mjs")}


@pytest.mark.parametrize("path", OWN, ids=lambda path: str(path.relative_to(FOLDER)))
def test_our_modules_are_short_say_what_they_are_and_make_no_html(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("// ") and text.count("\n") <= MAX_LINES
    assert [sink for sink in HTML_SINKS if sink in text] == []


def test_our_modules_import_only_files_that_exist() -> None:
    for path in OWN:
        for name in re.findall(r"""(?:from|import)\s*\(?"(\.[^"]+)\"""", path.read_text(encoding="utf-8")):
            assert (path.parent / name).resolve().is_file(), f"{path}: {name}"


def test_the_page_has_no_inline_script_style_or_foreign_address() -> None:
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|https?://", page)


def test_every_file_is_served_with_the_policy_and_nothing_else_is(server: RunningServer) -> None:
    for path in [FOLDER / "index.html", *OWN, VENDOR / "preact.mjs", FOLDER / "explorer.css", FOLDER / "icon.svg"]:
        name = "/" if path.name == "index.html" else f"/static/{path.relative_to(FOLDER)}"
        answer = server.client.get(name)
        assert (answer.status_code, answer.content) == (200, path.read_bytes()), name
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self'" in policy and "unsafe" not in policy and "default-src 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    unknown = ("/static/", "/static/vendor/vendored.json", "/static/index.html", "/static/vendor/sigma.LICENSE")
    for name in (*unknown, "/static/../app.py", "/static/%2e%2e/app.py", "/static/core"):
        assert server.client.get(name).status_code in (404, 400), name
    assert server.client.post("/").status_code == 405


def test_the_plain_address_of_a_review_leads_to_its_page(server: RunningServer) -> None:
    policy = server.client.get("/").headers["content-security-policy"]
    for sent, led_to in (
        ("573a7f2e", "573a7f2e"),
        ("573a7f2e?index=carol", "573a7f2e?index=carol"),
        ("a%0d%0ax%2F%ed%b0%af", "a%0D%0Ax%3F%EF%BF%BD%EF%BF%BD%EF%BF%BD"),
    ):
        answer = server.client.get(f"/review/{sent}", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (307, f"/#/review/{led_to}")
        assert answer.headers["content-security-policy"] == policy
    assert server.client.get("/review///evil.test").status_code == 404
    assert server.client.post("/review/573a7f2e").status_code == 405


def test_a_known_file_is_not_sent_again_and_is_sent_compressed(server: RunningServer) -> None:
    first = server.client.get("/static/vendor/sigma.min.js", headers={"accept-encoding": "gzip"})
    assert first.headers["content-encoding"] == "gzip"
    assert first.content == (VENDOR / "sigma.min.js").read_bytes() != gzip.compress(first.content)
    again = server.client.get("/static/vendor/sigma.min.js", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
