"""Medical guidelines, seven texts of ours: what must lead, what must not be an entity, and the types."""

from __future__ import annotations

from collections import Counter

import pytest

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.indexing.extraction.extracted_graph import read_document
from graphrag_pipeline_tests.support.paths import TEST_DATA

LEAD = ("SURGERY", "RADIOTHERAPY", "COLON CANCER", "CANCER", "CHEMOTHERAPY", "LYMPH NODE", "BIOPSY", "SIDE EFFECT")
"""All among the 25 most frequent."""
JUNK = (
    *("KEY", "KEY POINTS", "OVERVIEW", "INTRODUCTION", "CONTENTS", "DIAGNOSIS OFFER", "COMPLICATIONS LYMPHOEDEMA"),
    *("GUIDE", "ADDITION", "EXTENT", "EXAMPLE", "WARNING", "NOTE", "TABLE", "PURPOSE", "CANCER STARTED", "SUMMARY"),
)
TYPES = {
    "COMPUTED TOMOGRAPHY": "CONCEPT", "MAGNETIC RESONANCE IMAGING": "CONCEPT", "CT": "CONCEPT", "MRI": "CONCEPT",
    "EGFR": "CONCEPT", "HODGKIN LYMPHOMA": "CONCEPT", "GLEASON SCORE": "CONCEPT", "MARIA KELLER": "PERSON",
    "NATIONAL CANCER INSTITUTE": "ORGANIZATION", "WORLD HEALTH ORGANIZATION": "ORGANIZATION", "ZURICH": "GEO",
}  # fmt: skip


@pytest.fixture(scope="module")
def found() -> tuple[Counter[str], dict[str, str]]:
    """Sentences that name each entity, and its type."""
    counts: Counter[str] = Counter()
    types: dict[str, str] = {}
    for path in sorted((TEST_DATA / "extraction" / "guidelines").glob("*.txt")):
        sentences, _ = read_document(path.stem, path.read_text(encoding="utf-8"))
        for sentence in sentences:
            counts.update({normalize_title(occurrence.name) for occurrence in sentence.occurrences})
            types |= {normalize_title(occurrence.name): occurrence.type for occurrence in sentence.occurrences}
    return counts, types


def test_terms_of_the_field_lead(found: tuple[Counter[str], dict[str, str]]) -> None:
    counts, _ = found
    most = sorted(counts, key=lambda title: (-counts[title], title))[:25]
    assert [title for title in LEAD if title not in most] == []


def test_words_of_headings_and_of_every_explanation_are_no_entities(
    found: tuple[Counter[str], dict[str, str]],
) -> None:
    assert [title for title in JUNK if title in found[0]] == []


def test_no_type_is_given_without_evidence(found: tuple[Counter[str], dict[str, str]]) -> None:
    types = found[1]
    assert {title: types[title] for title in TYPES} == TYPES
    named = {title for title, kind in types.items() if kind in ("PERSON", "ORGANIZATION", "GEO", "EVENT")}
    assert len(named) <= 8
