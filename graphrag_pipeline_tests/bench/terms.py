"""The most frequent entities of four kinds of text, judged: their share of junk, and of right types.

The texts are ours: a medical guideline, a manual of a program, minutes of a board and a story
(`graphrag_pipeline_tests/data/terms`). The entities are those of the embedded engine after resolution, by number of
sentences. `judged.json` beside the texts says for each entity that a reader saw whether it is junk, and else its type.

Junk is what a reader of the field would not look up: cut phrases, ordinary words, units, parts of documents, and the
second name of one thing. An entity that nobody judged counts as junk, so a change of the rules shows until the list is
read again. Right types are counted among the entities that are not junk; UNKNOWN is never right.

The bench is called `terms`; by itself

    python -m graphrag_pipeline_tests.bench.terms [FOLDER ...]

prints the entities with number of sentences and type. A FOLDER is a text of several files (`*.txt`, `*.md`), whose
entities are listed without a verdict.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from graphrag_pipeline.engines.embedded.extraction import read_document
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.indexing.graph.merge_proposals import propose_merges
from graphrag_pipeline.indexing.graph.resolution import TitleRecord, resolve_titles
from graphrag_pipeline_tests.bench.measuring import Figure

TEXTS = Path(__file__).resolve().parents[1] / "data" / "terms"
KINDS = ("guideline", "manual", "minutes", "story")
N_LISTED = 100
MAX_JUNK, MIN_TYPED = 0.2, 0.45
"""What the small English pipeline of spaCy reaches: most types are right in stories and minutes, half in manuals."""


@dataclass(frozen=True)
class ListedEntity:
    """An entity of a text, with the number of sentences that name it."""

    title: str
    type: str
    n_sentences: int


@dataclass(frozen=True)
class Verdict:
    """The judged entities of one text: junk and unknown titles, and those with a wrong type."""

    n_entities: int
    junk: tuple[str, ...]
    unjudged: tuple[str, ...]
    wrong_types: tuple[str, ...]

    @property
    def junk_share(self) -> float:
        return (len(self.junk) + len(self.unjudged)) / self.n_entities

    @property
    def typed_share(self) -> float:
        n_terms = self.n_entities - len(self.junk) - len(self.unjudged)
        return (n_terms - len(self.wrong_types)) / n_terms


def list_entities(documents: Iterable[tuple[str, str]], n: int = N_LISTED) -> list[ListedEntity]:
    """Return the `n` most frequent entities of (title, text) pairs, most frequent first, ties by title."""
    sentences = [sentence for title, text in documents for sentence in read_document(title, text)[0]]
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
    records = [TitleRecord(title, _choose_type(types[title]), n_found) for title, n_found in counts.items()]
    merges = resolve_titles(propose_merges(records, ties=ties), neighbours, counts)
    merged: Counter[str] = Counter()
    merged_types: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        named = {o.title: merges[o.title].into if o.title in merges else o.title for o in sentence.occurrences}
        merged.update(set(named.values()))
        for occurrence in sentence.occurrences:
            merged_types[named[occurrence.title]][occurrence.type] += 1
    found = sorted(merged.items(), key=lambda item: (-item[1], item[0]))[:n]
    return [ListedEntity(title, _choose_type(merged_types[title]), n_found) for title, n_found in found]


def _choose_type(types: Mapping[str, int]) -> str:
    return min(types, key=lambda kind: (kind == "UNKNOWN", -types[kind], kind))


def judge(entities: Sequence[ListedEntity], judged: Mapping[str, object]) -> Verdict:
    """Compare entities with the judged list of their text.

    Args:
        judged: `junk` (titles) and `types` (type -> titles).
    """
    junk, types = set(_strings(judged["junk"])), judged["types"]
    if not isinstance(types, Mapping):
        raise TypeError(f"types of a judged list: {types!r} is not a mapping of types to titles")
    right = {title: str(kind) for kind, titles in types.items() for title in _strings(titles)}
    return Verdict(
        len(entities),
        tuple(entity.title for entity in entities if entity.title in junk),
        tuple(entity.title for entity in entities if entity.title not in junk and entity.title not in right),
        tuple(entity.title for entity in entities if right.get(entity.title, entity.type) != entity.type),
    )


def _strings(values: object) -> list[str]:
    return [str(value) for value in values] if isinstance(values, list) else []


def read_kind(kind: str) -> list[ListedEntity]:
    """Return the entities of one of the four texts."""
    return list_entities([(kind, (TEXTS / f"{kind}.txt").read_text())])


@cache
def judge_kinds() -> dict[str, Verdict]:
    """Return the verdict on each of the four texts."""
    judged = json.loads((TEXTS / "judged.json").read_text())
    return {kind: judge(read_kind(kind), judged[kind]) for kind in KINDS}


def run() -> list[Figure]:
    """Return the share of junk and of right types of each text."""
    figures = []
    for kind, verdict in judge_kinds().items():
        what = f"terms: {kind}, {verdict.n_entities} entities"
        figures.append(Figure(f"{what}, junk", verdict.junk_share, "", limit=MAX_JUNK))
        figures.append(Figure(f"{what}, right types", verdict.typed_share, "", least=MIN_TYPED))
    return figures


def main(folders: Sequence[str]) -> int:
    """Print the entities of each text or folder, and the figures of the four texts; 1 if a limit does not hold."""
    for folder in folders:
        files = sorted(path for path in Path(folder).rglob("*") if path.suffix in (".txt", ".md"))
        if not files:
            print(f"{folder}: no .txt or .md file; skipped")
            continue
        _print(folder, list_entities((path.stem, path.read_text(errors="replace")) for path in files))
    if folders:
        return 0
    for kind, verdict in judge_kinds().items():
        _print(kind, read_kind(kind))
        print(f"junk: {', '.join(verdict.junk) or 'none'}")
        print(f"not judged, counted as junk: {', '.join(verdict.unjudged) or 'none'}")
        print(f"wrong types: {', '.join(verdict.wrong_types) or 'none'}\n")
    figures = run()
    print("\n".join(figure.to_row() for figure in figures))
    return int(any(figure.is_over or figure.is_under for figure in figures))


def _print(name: str, entities: Iterable[ListedEntity]) -> None:
    print(f"## {name}")
    print("\n".join(f"{entity.n_sentences:5} {entity.type:12} {entity.title}" for entity in entities))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
