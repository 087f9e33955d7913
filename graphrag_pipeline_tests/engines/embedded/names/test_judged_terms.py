"""The most frequent entities of four kinds of text of ours, judged: their share of junk, and of right types.

The entities are those of the embedded engine after resolution, by number of sentences. `judged.json` beside the texts
says for each entity that a reader saw whether it is junk, and else its type. Junk is what a reader of the field would
not look up: cut phrases, ordinary words, units, parts of documents, and the second name of one thing. Right types are
counted among the entities that are not junk; UNKNOWN is never right.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping

import pytest

from graphrag_pipeline.engines.embedded.extraction import read_document
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.indexing.graph.merge_proposals import propose_merges
from graphrag_pipeline.indexing.graph.resolution import TitleRecord, resolve_titles
from graphrag_pipeline_tests.support.paths import TEST_DATA

TEXTS = TEST_DATA / "terms"
N_LISTED = 100
MAX_JUNK, MIN_TYPED = 0.2, 0.45
"""What the small English pipeline of spaCy reaches: most types are right in stories and minutes, half in manuals."""


def list_entities(title: str, text: str) -> list[tuple[str, str]]:
    """Return title and type of the most frequent entities, most frequent first, ties by title."""
    sentences = read_document(title, text)[0]
    counts: Counter[str] = Counter()
    types: defaultdict[str, Counter[str]] = defaultdict(Counter)
    neighbours: defaultdict[str, set[str]] = defaultdict(set)
    ties: defaultdict[str, set[str]] = defaultdict(set)
    for sentence in sentences:
        titles = {occurrence.title for occurrence in sentence.occurrences}
        counts.update(titles)
        for occurrence in sentence.occurrences:
            types[occurrence.title][occurrence.type] += 1
            neighbours[occurrence.title] |= titles - {occurrence.title}
            ties[normalize_title(occurrence.written)].add(occurrence.title)
    records = [TitleRecord(title, choose_type(types[title]), n_found) for title, n_found in counts.items()]
    merges = resolve_titles(propose_merges(records, ties=ties), neighbours, counts)
    merged: Counter[str] = Counter()
    merged_types: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        named = {o.title: merges[o.title].into if o.title in merges else o.title for o in sentence.occurrences}
        merged.update(set(named.values()))
        for occurrence in sentence.occurrences:
            merged_types[named[occurrence.title]][occurrence.type] += 1
    found = sorted(merged, key=lambda title: (-merged[title], title))[:N_LISTED]
    return [(title, choose_type(merged_types[title])) for title in found]


def choose_type(types: Mapping[str, int]) -> str:
    return min(types, key=lambda kind: (kind == "UNKNOWN", -types[kind], kind))


@pytest.mark.parametrize("kind", ["guideline", "manual", "minutes", "story"])
def test_little_junk_and_right_types_in_four_kinds_of_text(kind: str) -> None:
    judged = json.loads((TEXTS / "judged.json").read_text())[kind]
    right = {title: kind for kind, titles in judged["types"].items() for title in titles}
    entities = list_entities(kind, (TEXTS / f"{kind}.txt").read_text())
    assert not [title for title, _ in entities if title not in right and title not in judged["junk"]], "judge these"
    junk = [title for title, _ in entities if title in judged["junk"]]
    terms = [(title, found) for title, found in entities if title not in judged["junk"]]
    wrong = [(title, found) for title, found in terms if right[title] != found]
    assert len(junk) / len(entities) <= MAX_JUNK, junk
    assert 1 - len(wrong) / len(terms) >= MIN_TYPED, wrong
