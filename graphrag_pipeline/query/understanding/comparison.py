"""Comparison of two documents or rows in a question: "What changed between TICKET-118 and TICKET-120?".

Their labels and the entities that only one of them has are compared by rule; what differs is said before the answer.
Titles of both are added to the question, so that each method, and a model, knows which two texts are meant.
Keep out: how a question names a document (`named_documents.py`), searching.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from graphrag_pipeline.filters import each_value, flatten_metadata
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.understanding.named_documents import find_documents_by_name, names_of
from graphrag_pipeline.query.understanding.time_phrases import TimeScope
from graphrag_pipeline.text.late_patterns import late_re

MAX_SHOWN = 8
"""Labels, and names of each document, that are said."""
MAX_VALUE = 60
"""Characters of a value."""
_ASKS = late_re(
    r"(?i)\b(?:compar\w+|differ\w*|versus|vs|chang\w+|between|vergleich\w*|unterschied\w*|différence\w*|diferencia\w*)\b"
    r"|比较|区别"
)


def add_comparison(index: IndexReader, scope: TimeScope) -> TimeScope:
    """Return a question that compares two documents with what differs between them; any other question unchanged.

    The differences stand in the account as `comparison`, too.
    """
    if not _ASKS.search(scope.question):
        return scope
    named = [_best_of(found) for found in find_documents_by_name(index, scope.question)]
    ids = list(dict.fromkeys(found[0] for found in named if len(found) == 1))
    rows = index.snapshot.rows_of("documents", ids)
    if len(rows) != 2 or not index.row_mask("documents")[rows].all():
        return scope
    columns = ["title", "path", "record", "metadata", "creation_date", "text_unit_ids", "text"]
    pair = index.snapshot.take("documents", rows, columns)
    own = [names_of(document) for document in pair]
    first, second = (document["title"] or document["path"] for document in pair)
    labels = dict(_differing(*map(_labels_of, pair, own)))
    only = _only_in_one(index, pair, own[0] | own[1])
    said = "; ".join(f"{label}: {a} / {b}" for label, (a, b) in list(labels.items())[:MAX_SHOWN])
    lines = [f"“{first}” / “{second}”: {said or 'the labels do not differ'}."]
    lines += [
        f"Only “{title}” names {', '.join(names[:MAX_SHOWN])}{' and others' if len(names) > MAX_SHOWN else ''}."
        for title, names in zip((first, second), only, strict=True)
        if names
    ]
    account = {"comparison": {"documents": [document["path"] for document in pair], "labels": labels, "only": only}}
    question = f"{scope.question} (“{first}”; “{second}”)"
    return replace(scope, question=question, account=scope.account | account, lead="\n".join(lines))


def _best_of(found: Mapping[str, float]) -> list[str]:
    """Return the documents of the highest weight."""
    return [document for document, weight in found.items() if weight == max(found.values())]


def _labels_of(document: Mapping[str, Any], own: Collection[str]) -> dict[str, str]:
    """Return label -> value of a document, and its date, without its own names."""
    values = flatten_metadata(json.loads(document["metadata"] or "{}"))
    texts = {name: ", ".join(map(str, each_value(value)))[:MAX_VALUE] for name, value in values}
    texts |= {"date": document["creation_date"][:10]} if document["creation_date"] else {}
    return {name: text for name, text in texts.items() if normalize_title(text) not in own}


def _differing(first: Mapping[str, str], second: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield (label, values) of the labels that differ, those that both documents have first."""
    for label in sorted({**first, **second}, key=lambda label: label not in first or label not in second):
        values = first.get(label) or "none", second.get(label) or "none"
        if normalize_title(values[0]) != normalize_title(values[1]):
            yield label, values


def _only_in_one(index: IndexReader, pair: list[dict[str, Any]], own: set[str]) -> tuple[list[str], list[str]]:
    """Return the titles of the entities that one document only names, those with most relationships first."""
    found = []
    for document in pair:
        units = index.snapshot.rows_of("text_units", document["text_unit_ids"])
        found.append(set(index.snapshot.adjacency.of_all("text_unit_entities", units)[1].tolist()))

    def titles(rows: set[int], other: str) -> list[str]:
        entities = index.snapshot.take("entities", sorted(rows), ["title", "names", "degree"])
        absent = [
            one
            for one in entities
            if one["title"] not in own
            and not any(name.casefold() in other for name in (one["title"], *(one["names"] or ())))
        ]
        return [one["title"] for one in sorted(absent, key=lambda one: (-one["degree"], one["title"]))]

    texts = [document["text"].casefold() for document in pair]
    return titles(found[0] - found[1], texts[1]), titles(found[1] - found[0], texts[0])
