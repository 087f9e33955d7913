"""Questions that name a document read it first; identifiers that no text has are refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.understanding.named_documents import asks_for_document, find_named_documents
from graphrag_pipeline_tests.support.roots import open_built

LOST = """# TICKET-118: Baskets lost

**Owner:** Ana

Many baskets were empty.

## Root cause

The chart took the secret of another namespace.
"""
NIGHT = """# The long night

- Incident: TICKET-7
- Owner: Bo

The lock was held by an old pod.
"""
REVIEW = """# Review

TICKET-118 was a root cause of grief. TICKET-7, too: the root cause of TICKET-7 is a lock.
"""
TEXTS = {"2025-03-04_lost.md": LOST, "night.md": NIGHT, "review.md": REVIEW}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphIndex]:
    with open_built(tmp_path_factory.mktemp("named"), TEXTS) as opened:
        yield opened


def paths_of(index: GraphIndex, question: str) -> set[str]:
    found = index.snapshot.rows_of("documents", sorted(find_named_documents(index, question)))
    return {row["path"] for row in index.snapshot.take("documents", found, ["path"])}


@pytest.mark.parametrize(
    ("question", "paths"),
    [
        ("What was the root cause of TICKET-118?", {"2025-03-04_lost.md"}),
        ("Which baskets lost?", {"2025-03-04_lost.md"}),
        ("Who wrote 2025-03-04_lost?", {"2025-03-04_lost.md"}),
        ("What happened in TICKET-7?", {"night.md"}),
        ("Who is Ana?", set()),
    ],
)
def test_a_document_is_named_by_its_code_title_file_or_label(index: GraphIndex, question: str, paths: set[str]) -> None:
    assert paths_of(index, question) == paths


def test_a_named_document_answers_first(index: GraphIndex) -> None:
    for method in ("auto", "basic", "local"):
        result = index.search("What was the root cause of TICKET-118?", method)
        assert result.citations[0].quote == "The chart took the secret of another namespace."


def test_a_summary_of_a_document_is_what_it_says_first(index: GraphIndex) -> None:
    question = "Summarize TICKET-118."
    assert asks_for_document(index, question) and not asks_for_document(index, "What was the root cause of TICKET-118?")
    assert "Many baskets were empty" in index.search(question, "local").citations[0].quote


def test_an_identifier_that_no_text_has_is_refused(index: GraphIndex) -> None:
    answer = index.search("What was the root cause of TICKET-119?").answer
    assert answer.startswith("Not in the index") and "TICKET-119" in answer.splitlines()[0]


def test_a_question_in_another_language_is_not_refused(index: GraphIndex) -> None:
    assert not index.search("Warum war die lange Nacht von TICKET-7 so lang?").answer.startswith("Not in the index")
