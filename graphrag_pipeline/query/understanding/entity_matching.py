"""Step 1 of local search: the entities that a question is about, by name and by vector (methods.md section 7).

"Row" means the position of a record in its contract table. Keep out: what surrounds the entities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_pipeline.identity import entity_text, normalize_title
from graphrag_pipeline.models.static_embeddings import load_static_embeddings
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.names import NamedQuestion
from graphrag_pipeline.settings.settings import LocalSearchSettings
from graphrag_pipeline.storage.lookups import NAME_WORD

ENTITY_VECTORS = "default-entity-description"


@dataclass(frozen=True)
class Match:
    """A matched entity: its row, cosine similarity to the question, and whether the question says its name."""

    row: int
    score: float
    is_named: bool


@dataclass(frozen=True)
class NamedEntities:
    """Entities that are matched because of their names, and those that are not to be.

    Attributes:
        question: taken apart, with the names that are to be matched and without those that are not.
        rows: of entities that a question or the settings name, surest first.
        excluded: rows of entities.
    """

    question: NamedQuestion
    rows: tuple[int, ...]
    excluded: frozenset[int] = frozenset()


def name_entities(index: IndexReader, question_text: str, settings: LocalSearchSettings) -> NamedEntities:
    """The entities of `include_entity_names`, then those whose name the question says, but `exclude_entity_names`."""
    included = find_by_names(index, settings.include_entity_names)
    excluded = frozenset(row for rows in find_by_names(index, settings.exclude_entity_names) for row in rows)
    taken = index.names.take_apart(question_text)
    groups = (*(rows for rows in included if rows not in taken.names), *taken.names)
    names = tuple(filter(None, (tuple(row for row in rows if row not in excluded) for rows in groups)))
    rows = [*(row for rows in (*included, *names) for row in rows), *index.names.find(question_text)]
    kept = tuple(row for row in dict.fromkeys(rows) if row not in excluded)
    return NamedEntities(NamedQuestion(names, taken.words), kept, excluded)


def find_by_names(index: IndexReader, names: Sequence[str]) -> list[tuple[int, ...]]:
    """Rows of the entities that bear each name, by title or as a text writes it; () for a name that none bears."""
    if not names:
        return []
    titles = index.snapshot.rows_of("entities", [normalize_title(name) for name in names], "title").tolist()
    found = []
    for name, row in zip(names, titles, strict=True):
        words = NAME_WORD.findall(normalize_title(name))
        written = [
            r for span in index.names.find_spans(words) if span.end - span.start == len(words) for r in span.rows
        ]
        rows = [row, *written] if row >= 0 and index.row_mask("entities")[row] else written
        found.append(tuple(dict.fromkeys(rows)))
    return found


def unknown_names(index: IndexReader, names: Sequence[str]) -> list[str]:
    """Those of some names that no entity that may be read bears."""
    return [name for name, rows in zip(names, find_by_names(index, names), strict=True) if not rows]


def match_entities(index: IndexReader, question_text: str, k: int, named: NamedEntities | None = None) -> list[Match]:
    """The k entities nearest to a question: those whose name it says, then by vector similarity.

    Names come first because static vectors of long descriptions drift: on the Christmas Carol index JACOB MARLEY is
    at 0.37 from "Who is Jacob Marley?", behind eight others. Exactly k where the index has k that may be matched and
    the question has a vector; one without (punctuation, an unknown script) matches by name alone.

    Args:
        sought: the question, with those asked before it.
        named: by default, the entities whose name it says.
    """
    named = named or name_entities(index, question_text, LocalSearchSettings())
    vector = index.embed([question_text])[0]
    titles = index.snapshot.vectors(ENTITY_VECTORS)
    first = list(named.rows[:k])
    named_scores = _read_entity_vectors(index, first) @ vector
    matches = [Match(row, float(score), True) for row, score in zip(first, named_scores, strict=True)]
    if len(matches) < k:
        near = titles.search(vector, k + len(matches) + len(named.excluded))
        rows = index.snapshot.rows_of("entities", [record_id for record_id, _ in near])
        taken = {*first, *named.excluded}
        found = [(int(row), score) for row, (_, score) in zip(rows, near, strict=True) if int(row) not in taken]
        matches += [Match(row, score, False) for row, score in found[: k - len(matches)]]
    return matches


def _read_entity_vectors(index: IndexReader, rows: list[int]) -> np.ndarray:
    """Vectors of entities; with the bundled embedder it costs less to make them again than to look them up."""
    found = index.snapshot.take("entities", rows, ["id", "title", "description"])
    if index.embedder.fingerprint == load_static_embeddings().fingerprint:
        return index.embed([entity_text(record["title"], record["description"]) for record in found])
    return index.snapshot.vectors(ENTITY_VECTORS).vectors([record["id"] for record in found])
