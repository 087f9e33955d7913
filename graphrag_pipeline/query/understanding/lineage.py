"""Lineage in a question: "Which incidents touched models upstream of fct_orders?".

What is upstream or downstream of a name is read from the rows that say `depends_on` (`settings.input.UPSTREAM`): those
of lineage files and of mapped tables. The names found are added to the question, so that every method, and a model,
looks for texts about them, too. Keep out: searching.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_overview_word, topic_words
from graphrag_pipeline.query.understanding.named_documents import neighbours_of, read_documents
from graphrag_pipeline.query.understanding.time_phrases import TimeScope
from graphrag_pipeline.settings.input import UPSTREAM
from graphrag_pipeline.text.document_names import DOCUMENT
from graphrag_pipeline.text.late_patterns import late_re

MAX_FOUND = 30
"""Names added to a question, the nearest first."""
MAX_DOCUMENTS = 10
"""Names of documents about them that are added."""
_DIRECTION = late_re(r"(?i)\b(upstream|downstream)\b")


def add_lineage(index: IndexReader, scope: TimeScope) -> TimeScope:
    """Return a question with the names that are upstream or downstream of those in it; unchanged without any.

    The added names stand in the account as `lineage`, and in the note under the answer.
    """
    asked = _DIRECTION.search(scope.question)
    if not asked:
        return scope
    apart = index.names.take_apart(scope.question)
    named = [row for rows in apart.names for row in rows]
    direction = asked[1].lower()
    found = _follow(named, lambda row: _PARENTS[direction](index, row))
    if not found:
        return scope
    titles = [entity["title"] for entity in index.snapshot.take("entities", [*named, *found], ["title"])]
    starts, others = titles[: len(named)], titles[len(named) :]
    said = f"{direction.capitalize()} of {', '.join(starts)}, by {UPSTREAM}: {', '.join(others)}."
    words = frozenset(
        word for word in topic_words(" ".join(apart.words)) if word not in _PARENTS and not is_overview_word(word)
    )
    if words and (documents := _documents_about(index, [*named, *found], words)):
        said += f" See {', '.join(documents)}."
    account = scope.account | {"lineage": {"direction": direction, "of": starts, "names": others}}
    note = f"{scope.note}\n\n{said}" if scope.note else said
    return replace(scope, question=f"{scope.question} {said}", account=account, note=note)


def _documents_about(index: IndexReader, rows: list[int], asked: frozenset[str]) -> list[str]:
    """Return the names of the documents that mention some entities, of the kind that is asked for.

    Args:
        asked: stems of what the question asks for; a document is of that kind if its title or path has one of them.
    """
    others = list(dict.fromkeys(other for row in rows for other in neighbours_of(index, row) if other not in rows))
    names = []
    for other, entity in zip(others, index.snapshot.take("entities", others, ["title", "type"]), strict=True):
        if entity["type"] == DOCUMENT:
            units = index.snapshot.adjacency.of("entity_text_units", other)
            texts = (f"{found['title']} {found['path']}" for found in read_documents(index, units))
            names += [entity["title"]] if any(asked & topic_words(text) for text in texts) else []
    return names[:MAX_DOCUMENTS]


def _follow(named: list[int], next_of: Callable[[int], Iterator[int]]) -> list[int]:
    """Return the entities reached from some, the nearest first."""
    reached = dict.fromkeys(named)
    level = list(reached)
    while level and len(reached) < len(named) + MAX_FOUND:
        level = [row for row in dict.fromkeys(found for one in level for found in next_of(one)) if row not in reached]
        reached |= dict.fromkeys(level)
    return list(reached)[len(named) : len(named) + MAX_FOUND]


def _parents_of(index: IndexReader, row: int) -> Iterator[int]:
    """Yield the entities that the rows of an entity depend on."""
    [entity] = index.snapshot.take("entities", [row], ["title", "names"])
    own = {normalize_title(name) for name in (entity["title"], *(entity["names"] or ()))}
    for document in read_documents(index, index.snapshot.adjacency.of("entity_text_units", row)):
        values = json.loads(document["metadata"] or "{}")
        mapping = index.settings.input.mapping_of(document["path"] or "", document["record"] or "", values)
        if mapping and mapping.upstream and normalize_title(document["title"] or "") in own:
            for name in mapping.relationships[mapping.upstream].names_in(values.get(mapping.upstream)):
                yield from index.names.find_by_key(name)


def _children_of(index: IndexReader, row: int) -> Iterator[int]:
    """Yield the neighbours of an entity that depend on it."""
    yield from (other for other in neighbours_of(index, row) if row in _parents_of(index, other))


_PARENTS = {"upstream": _parents_of, "downstream": _children_of}
