"""Lineage in a question: "Which incidents touched models upstream of fct_orders?", "What depends on orders?".

What is upstream or downstream of a name is read from the rows of lineage files and of mapped tables with columns that
are lineage (`TableMapping.lineage`); the name of such a column is also a verb. The names found are added to the
question, so that every method, and a model, looks for texts about them, too. Keep out: searching.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_overview_word, topic_words
from graphrag_pipeline.query.understanding.named_documents import neighbours_of, read_documents
from graphrag_pipeline.query.understanding.time_phrases import TimeScope
from graphrag_pipeline.settings.input import LINEAGE, Direction
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
    asked = _find_direction(index, scope.question)
    if not asked:
        return scope
    named, direction = asked
    columns: dict[str, None] = {}
    found = _follow(named, lambda row: _next_of(index, row, direction, columns))
    if not found:
        return scope
    apart = index.names.take_apart(scope.question)
    titles = [entity["title"] for entity in index.snapshot.take("entities", [*named, *found], ["title"])]
    starts, others = titles[: len(named)], titles[len(named) :]
    said = f"{direction.capitalize()} of {', '.join(starts)}, by {', '.join(columns)}: {', '.join(others)}."
    verbs = topic_words(" ".join((*_OPPOSITE, *columns)).replace("_", " "))
    words = frozenset(
        word for word in topic_words(" ".join(apart.words)) if word not in verbs and not is_overview_word(word)
    )
    if words and (documents := _documents_about(index, [*named, *found], words)):
        said += f" See {', '.join(documents)}."
    account = scope.account | {"lineage": {"direction": direction, "of": starts, "names": others}}
    note = f"{scope.note}\n\n{said}" if scope.note else said
    return replace(scope, question=f"{scope.question} {said}", account=account, note=note)


def _find_direction(index: IndexReader, question: str) -> tuple[list[int], Direction] | None:
    """Return the entities that a question names and the direction it asks for; None if it asks for none.

    "What depends on orders?" names what others depend on behind the verb, "What does orders depend on?" before it.
    """
    if asked := _DIRECTION.search(question):
        return _named_in(index, question), "upstream" if asked[1].lower() == "upstream" else "downstream"
    columns = {column: way for one in (LINEAGE, *index.settings.input.tables) for column, way in one.lineage.items()}
    for column, way in columns.items():
        verb, *rest = column.casefold().replace("_", " ").split()
        words = r"\s+".join((rf"{re.escape(verb.removesuffix('s'))}s?", *map(re.escape, rest)))
        asked = re.search(rf"\b{words}\b", question, re.IGNORECASE)
        if asked and (named := _named_in(index, question[asked.end() :])):
            return named, _OPPOSITE[way]
        if asked and (named := _named_in(index, question[: asked.start()])):
            return named, way
    return None


def _named_in(index: IndexReader, text: str) -> list[int]:
    return [row for rows in index.names.take_apart(text).names for row in rows]


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


def _next_of(index: IndexReader, row: int, way: Direction, columns: dict[str, None]) -> Iterator[int]:
    """Yield the entities that are next upstream or downstream of one: by its own rows, then by those of neighbours.

    Args:
        columns: gets the columns that say so.
    """
    for column, other in _read_lineage(index, row, way):
        columns[column] = None
        yield other
    for neighbour in neighbours_of(index, row):
        for column, other in _read_lineage(index, neighbour, _OPPOSITE[way]):
            if other == row:
                columns[column] = None
                yield neighbour


def _read_lineage(index: IndexReader, row: int, way: Direction) -> Iterator[tuple[str, int]]:
    """Yield (column, entity) of what the rows of an entity name in the columns of a direction."""
    [entity] = index.snapshot.take("entities", [row], ["title", "names"])
    own = {normalize_title(name) for name in (entity["title"], *(entity["names"] or ()))}
    for document in read_documents(index, index.snapshot.adjacency.of("entity_text_units", row)):
        values = json.loads(document["metadata"] or "{}")
        mapping = index.settings.input.mapping_of(document["path"] or "", document["record"] or "", values)
        if mapping and normalize_title(document["title"] or "") in own:
            for column in (column for column, its in mapping.lineage.items() if its == way):
                for name in mapping.relationships[column].names_in(values.get(column)):
                    yield from ((column, other) for other in index.names.find_by_key(name))


_OPPOSITE: dict[Direction, Direction] = {"upstream": "downstream", "downstream": "upstream"}
