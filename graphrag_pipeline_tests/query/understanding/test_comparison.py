"""Questions that compare two documents: what differs is said before the passages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.understanding.comparison import add_comparison
from graphrag_pipeline.query.understanding.time_phrases import TimeScope
from graphrag_pipeline_tests.support.roots import open_built

TEXTS = {
    "2025-03-04_first.md": "# TICKET-118: Baskets lost\n\n**Owner:** Ana Roy\n**Severity:** SEV-1\n"
    "**Status:** closed\n\nAna Roy restarted `basket-api` in Leipzig. The queue was full.\n",
    "second.md": "# TICKET-120: Baskets lost again\n\n**Date:** 2025-05-06\n**Owner:** Ana Roy\n**Severity:** SEV-2\n"
    "**Status:** closed\n\nAna Roy restarted `slot-planner` in Leipzig. The disk was slow.\n",
    "third.md": "# TICKET-130: a van is late\n\nThe van of Bo Lind was late.\n",
}
LEAD = """“TICKET-118: Baskets lost” / “TICKET-120: Baskets lost again”: severity: SEV-1 / SEV-2; \
date: 2025-03-04 / 2025-05-06.
Only “TICKET-118: Baskets lost” names BASKET-API, SEV-1.
Only “TICKET-120: Baskets lost again” names SLOT-PLANNER, SEV-2."""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphIndex]:
    with open_built(tmp_path_factory.mktemp("compared"), TEXTS) as opened:
        yield opened


@pytest.mark.parametrize(
    "question", ["What changed between TICKET-118 and TICKET-120?", "Compare 2025-03-04_first and TICKET-120."]
)
def test_what_differs_is_said_before_the_passages_of_both(index: GraphIndex, question: str) -> None:
    result = index.search(question)
    assert result.answer.startswith(LEAD)
    assert {citation.document_path for citation in result.citations[:3]} == {"2025-03-04_first.md", "second.md"}
    assert all(citation.document_date for citation in result.citations[:3])
    assert result.selection["comparison"]["labels"]["severity"] == ("SEV-1", "SEV-2")
    asked = add_comparison(index, TimeScope(question)).question  # as a model gets it
    assert asked == f"{question} (“TICKET-118: Baskets lost”; “TICKET-120: Baskets lost again”)"


@pytest.mark.parametrize(
    "question",
    [
        "What happened in TICKET-118 and TICKET-120?",
        "What changed in TICKET-118?",
        "Compare TICKET-118 and TICKET-999.",
    ],
)
def test_any_other_question_is_not_compared(index: GraphIndex, question: str) -> None:
    assert "comparison" not in index.search(question).selection


def test_a_document_outside_of_the_filters_is_not_compared(index: GraphIndex) -> None:
    result = index.search("Compare TICKET-118 and TICKET-120.", filters=["path=second.md"])
    assert "comparison" not in result.selection and "Baskets lost”" not in result.answer
