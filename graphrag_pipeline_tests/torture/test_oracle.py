"""The judge of the torture: what counts as a violation."""

from __future__ import annotations

import json
import random
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import fsspec
import pytest

from graphrag_pipeline_tests.support.paths import REPOSITORY
from graphrag_pipeline_tests.torture.commands import fill_disk
from graphrag_pipeline_tests.torture.corpus import MIN_DOCUMENTS, Corpus
from graphrag_pipeline_tests.torture.damage import KINDS, damage_file
from graphrag_pipeline_tests.torture.documented import (
    ANY_TIME,
    CUT_FILE,
    DAMAGED_FILE,
    DAMAGED_OBJECT,
    FULL_DISK,
    STORE_FAULT,
    read_documented_errors,
)
from graphrag_pipeline_tests.torture.machines import make_machine
from graphrag_pipeline_tests.torture.oracle import Oracle, Ran
from graphrag_pipeline_tests.torture.stores import open_store

QUERY = ("query", "--json", "--method", "basic", "Who?")
DAMAGED = "error: snapshot x: y is missing or not whole"
FULL = "error: `x` cannot be written (No space left on device); free disk space"
BATCH = ("batch", "questions.txt")
FAILED = json.dumps({"question": "Who?", "error": DAMAGED})
MADE_UP = "a quotation that no document contained: 'made up'"
NOT_JSON = "an answer that is not JSON (Expecting value: line 1 column 1 (char 0)): 'no JSON'"
NO_DAMAGE = "it reports damage where there is none"
DURING_DAMAGE = frozenset({DAMAGED_FILE})


def answer(*quotes: str, snapshot: str = "a", text: str = "") -> str:
    citations = [{"quote": quote} for quote in quotes]
    said = {"answer": text, "citations": citations, "context": {}, "method": "basic", "selection": {}}
    return json.dumps(said | {"snapshot": snapshot, "question": "Who?", "seconds": len(quotes)})


@pytest.mark.parametrize(
    ("ran", "violation"),
    [
        (Ran(QUERY, 0, answer("said"), ""), None),
        (Ran(QUERY, 0, answer("said", "made up"), ""), "a quotation that no document contained: 'made up'"),
        (Ran(QUERY, 0, "no JSON", ""), NOT_JSON),
        (Ran(("index",), 0, "done", ""), None),
        (Ran(("index",), 1, "", DAMAGED), "an error without a cause"),
        (Ran(("index",), 1, "", DAMAGED, causes=DURING_DAMAGE), None),
        (Ran(("index",), 1, "", "error: oh", causes=DURING_DAMAGE), "an error without a cause"),
        (Ran(("index",), 1, "", "x", causes=DURING_DAMAGE), "exit status 1 without a line that starts with 'error: '"),
        (Ran(("index",), 1, "", FULL, causes=frozenset({FULL_DISK})), None),
        (Ran(("index",), 1, "", FULL, causes=DURING_DAMAGE), "an error without a cause"),
        (Ran(("index",), -11, "", "", causes=DURING_DAMAGE), "ended by signal 11"),
        (Ran(("query",), -7, "", "", causes=DURING_DAMAGE), "ended by signal 7"),
        (Ran(("query",), -7, "", "", causes=frozenset({CUT_FILE})), None),
        (Ran(("index",), -9, "", "", was_killed=True), None),
        (Ran(("index",), 1, "", "Traceback (most recent call last):", causes=DURING_DAMAGE), "a traceback"),
        (Ran(BATCH, 1, FAILED, "1 questions: 0 answered, 1 failed", causes=DURING_DAMAGE), None),
        (Ran(BATCH, 1, FAILED, ""), f"a question without an answer and without a cause: {DAMAGED}"),
        (Ran(BATCH, 1, "", "1 failed"), "exit status 1 without a line that starts with 'error: '"),
        (Ran(BATCH, 1, answer("made up") + "\n" + FAILED, "", causes=DURING_DAMAGE), MADE_UP),
        (Ran(("verify",), 1, "damaged table: x: y", "", causes=DURING_DAMAGE), None),
        (Ran(("verify",), 1, "damaged object: x: y", "", causes=frozenset({DAMAGED_OBJECT})), NO_DAMAGE),
        (Ran(("verify", "--store"), 1, "damaged object: x: y", "", causes=frozenset({DAMAGED_OBJECT})), None),
        (Ran(("verify",), 1, "damaged table: x: y", ""), NO_DAMAGE),
    ],
)
def test_what_counts_as_a_violation(ran: Ran, violation: str | None) -> None:
    assert Oracle(lambda quote: quote == "said").find_violation(ran) == violation


def test_another_answer_from_the_same_snapshot_is_a_violation() -> None:
    oracle = Oracle(lambda quote: True)
    assert oracle.find_violation(Ran(QUERY, 0, answer(text="Ada"), "")) is None
    assert oracle.find_violation(Ran(QUERY, 0, answer(text="Ada"), "")) is None
    assert oracle.find_violation(Ran(QUERY, 0, answer(text="Bram", snapshot="b"), "")) is None
    assert "another answer" in (oracle.find_violation(Ran(QUERY, 0, answer(text="Bram"), "")) or "")


def test_each_documented_error_is_a_message_of_the_product() -> None:
    sources = (REPOSITORY / "graphrag_pipeline").rglob("*.py")
    said = re.sub(r'"\n\s*f?"', "", "\n".join(path.read_text(encoding="utf-8") for path in sources))
    errors = read_documented_errors()
    assert len(errors) > 10
    assert [error.part for error in errors if error.part not in said] == []
    assert set().union(*(error.causes for error in errors)) == {
        ANY_TIME, DAMAGED_FILE, DAMAGED_OBJECT, FULL_DISK, STORE_FAULT
    }  # fmt: skip


def test_a_corpus_remembers_what_it_said_before_edits(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path / "input", random.Random(1))
    before = [path.read_text() for path in corpus.folder.glob("*.txt")]
    kinds = {corpus.edit().split()[0] for _ in range(60)}
    assert kinds == {"add", "change", "delete"}
    assert len(corpus.names()) >= MIN_DOCUMENTS
    assert all(corpus.said(text) for text in before)
    assert not corpus.said("Ebenezer Scrooge")


def test_damage_changes_one_file_and_names_it(tmp_path: Path) -> None:
    kinds = set()
    for seed in range(30):
        (tmp_path / "tables").mkdir(exist_ok=True)
        files = {tmp_path / "tables" / f"{n}.bin": bytes(range(1, 9)) for n in range(3)}
        for path, data in files.items():
            path.write_bytes(data)
        what = damage_file(tmp_path, random.Random(seed))
        changed = [path for path, data in files.items() if not path.exists() or path.read_bytes() != data]
        assert what is not None and [path.name for path in changed] == [what.split("/")[1]]
        kinds.add(what.split()[0])
    assert kinds == set(KINDS)


def test_an_import_mends_only_what_it_publishes(tmp_path: Path) -> None:
    machine = make_machine(tmp_path / "one", tmp_path, "", {}, is_importer=True)
    for what in ("a", "b"):
        machine.note_damage(what)
    machine.forget_damage(1, is_import=True)
    assert (machine.damage, machine.older_damage) == (["b"], ["a"])
    machine.forget_damage(2)
    assert (machine.damage, machine.older_damage) == ([], [])


def test_a_machine_knows_whether_a_file_was_cut_since(tmp_path: Path) -> None:
    machine = make_machine(tmp_path / "one", tmp_path, "", {})
    for what in ("flip a", "cut b", "zero c"):
        machine.note_damage(what)
    machine.forget_damage(3)
    assert [machine.was_cut_since(n) for n in range(4)] == [True, True, False, False]


@pytest.mark.parametrize("kind", ["file", "s3"])
def test_a_damaged_state_is_put_back(tmp_path: Path, kind: str) -> None:
    with open_store(kind, tmp_path, random.Random(1)) as store:
        assert store.damage_state(random.Random(1), 60) is None, "there is no state yet"
        options = {} if kind == "file" else json.loads(store.environment["FSSPEC_S3"])
        name = f"{store.url}/states/000000001.json.gz"
        files, path = fsspec.core.url_to_fs(name, auto_mkdir=True) if kind == "file" else (None, name)
        files = files or fsspec.filesystem("s3", **options)
        files.pipe_file(path, b"whole")
        began = time.monotonic()
        assert store.damage_state(random.Random(1), 60) and store.failed_since(time.monotonic())
        assert files.cat_file(path) != b"whole" and store.is_damaged
        store.end_fault(is_now=True)
        assert files.cat_file(path) == b"whole"
        assert store.failed_since(began) and not store.failed_since(time.monotonic())


@pytest.mark.parametrize("kind", ["local", "file", "s3"])
def test_a_store_knows_when_it_failed(tmp_path: Path, kind: str) -> None:
    with open_store(kind, tmp_path, random.Random(1)) as store:
        assert not store.failed_since(time.monotonic())
        began = time.monotonic()
        assert bool(store.begin_fault(60)) == store.failed_since(began) == (kind != "local")
        store.end_fault(is_now=True)
        assert not store.failed_since(time.monotonic())


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="Linux alone can limit another process")
def test_a_process_whose_disk_is_full_gets_an_error_and_no_signal(tmp_path: Path) -> None:
    program = "import pathlib, sys; print(flush=True); sys.stdin.readline(); pathlib.Path(sys.argv[1]).write_text('x')"
    command, pipe = [sys.executable, "-c", program, str(tmp_path / "x")], subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert process.stdout and process.stdout.readline() and fill_disk(process.pid)
    _, err = process.communicate("go\n")
    assert process.returncode == 1 and "File too large" in err
