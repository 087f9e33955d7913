"""The judge of the torture: what counts as a violation."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from graphrag_pipeline_tests.torture.corpus import MIN_DOCUMENTS, Corpus
from graphrag_pipeline_tests.torture.damage import damage_file
from graphrag_pipeline_tests.torture.oracle import Ran, find_violation

QUERY = ("query", "--json", "Who?")


def answer(*quotes: str) -> str:
    return json.dumps({"citations": [{"quote": quote} for quote in quotes]})


@pytest.mark.parametrize(
    ("ran", "violation"),
    [
        (Ran(QUERY, 0, answer("said"), ""), None),
        (Ran(QUERY, 0, answer("said", "made up"), ""), "a quotation that no document contained: 'made up'"),
        (Ran(QUERY, 0, "no JSON", ""), "an answer that is not JSON"),
        (Ran(("index",), 0, "done", ""), None),
        (Ran(("index",), 1, "", "error: file x is damaged"), "an error without a cause"),
        (Ran(("index",), 1, "", "error: file x is damaged", excuse="cut x"), None),
        (Ran(("index",), 1, "", "x", excuse="cut x"), "exit status 1 without a line that starts with 'error: '"),
        (Ran(("index",), -11, "", "", excuse="cut x"), "ended by signal 11"),
        (Ran(("index",), -9, "", "", was_killed=True), None),
        (Ran(("index",), 1, "", "Traceback (most recent call last):", excuse="cut x"), "a traceback"),
    ],
)
def test_what_counts_as_a_violation(ran: Ran, violation: str | None) -> None:
    assert find_violation(ran, lambda quote: quote == "said") == violation


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
    assert kinds == {"flip", "cut", "zero", "remove"}
