"""Step 1 of local search: the entities that a question is about, by name and by vector.

Entities that the question names come first, then the nearest by cosine of the question's vector to the vector of title
and description. This follows Microsoft GraphRAG's local search, which matches by vector alone. "Row" is the position of
a record in its contract table. Keep out: relationships, text units and reports of the entities.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import entity_text, normalize_title
from graphrag_pipeline.models.ports import load_static_embedder
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.names import NamedQuestion
from graphrag_pipeline.settings.settings import LocalSearchSettings
from graphrag_pipeline.storage.lookups import NAME_WORD
from graphrag_pipeline.storage.vectors.stores import ScoredIds

ENTITY_VECTORS = "default-entity-description"


@dataclass(frozen=True)
class Match:
    """A matched entity: its row, its cosine to the question, and whether the question names it."""

    row: int
    score: float
    is_named: bool


@dataclass(frozen=True)
class NamedEntities:
    """Entities to match by name, and entities to leave out.

    Attributes:
        question: names and other words of the question; names of included entities are added, excluded ones removed.
        rows: of entities that the settings or the question name, surest first.
        excluded: rows of the entities that the settings exclude.
    """

    question: NamedQuestion
    rows: tuple[int, ...]
    excluded: frozenset[int] = frozenset()


def name_entities(index: IndexReader, question_text: str, settings: LocalSearchSettings) -> NamedEntities:
    """Return the entities of `include_entity_names`, then those in the question, without `exclude_entity_names`."""
    included = find_by_names(index, settings.include_entity_names)
    excluded = frozenset(row for rows in find_by_names(index, settings.exclude_entity_names) for row in rows)
    taken = index.names.take_apart(question_text)
    groups = (*(rows for rows in included if rows not in taken.names), *taken.names)
    names = tuple(filter(None, (tuple(row for row in rows if row not in excluded) for rows in groups)))
    rows = [*(row for rows in (*included, *names) for row in rows), *index.names.find(question_text)]
    kept = tuple(row for row in dict.fromkeys(rows) if row not in excluded)
    return NamedEntities(NamedQuestion(names, taken.words), kept, excluded)


def find_by_names(index: IndexReader, names: Sequence[str]) -> list[tuple[int, ...]]:
    """Return for each name the rows of its entities, by title or written form; () for an unknown name."""
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
    """Return the names that no entity of the index has, filters applied."""
    return [name for name, rows in zip(names, find_by_names(index, names), strict=True) if not rows]


def begin_matching(
    index: IndexReader,
    question_text: str,
    k: int,
    named: NamedEntities | None = None,
    settings: LocalSearchSettings | None = None,
) -> Callable[[], list[Match]]:
    """Start to match the k entities nearest to a question: those that it names, then by cosine.

    The search by vector runs while the caller does other work. The returned function waits for it and returns the
    matches.

    Names come first because static vectors of long descriptions are imprecise. On the Christmas Carol index, JACOB
    MARLEY has cosine 0.37 to "Who is Jacob Marley?", and eight other entities have more. The result has k entities if
    the index has as many and the question has a vector. A question without a vector (punctuation, an unknown script)
    matches by name only.

    Args:
        question_text: the question, followed by earlier questions of the conversation.
        named: entities to match by name; None: those that the text names.
        settings: its `entity_key` and `entity_scope` are read; None: the defaults.

    Raises:
        PipelineError: no vector belongs to an entity by `entity_key`.
    """
    settings = settings or LocalSearchSettings()
    named = named or name_entities(index, question_text, settings)
    vector = index.embed_question(question_text)
    first = list(named.rows[:k])
    n_near = k - len(first)
    near = _begin_nearest(index, vector, {*first, *named.excluded}, n_near, settings) if n_near else list

    def wait() -> list[Match]:
        scores = _read_entity_vectors(index, first, settings.entity_key) @ vector
        matches = [Match(row, float(score), True) for row, score in zip(first, scores, strict=True)]
        return matches + [Match(row, score, False) for row, score in itertools.islice(near(), n_near)]

    return wait


def _begin_nearest(
    index: IndexReader, vector: np.ndarray, taken: set[int], k: int, settings: LocalSearchSettings
) -> Callable[[], Iterable[tuple[int, float]]]:
    """Start a search for the entities of the scope by cosine; return a function that yields their rows and cosines.

    Taken entities are left out. About k are wanted. More are searched for if these hold too many that are taken or not
    in the scope.
    """
    n = k + len(taken)
    begun = index.snapshot.vectors(ENTITY_VECTORS).begin_search(vector, n)
    return lambda: _iterate_nearest(index, vector, taken, n, begun, settings)


def _iterate_nearest(
    index: IndexReader,
    vector: np.ndarray,
    taken: set[int],
    n: int,
    begun: Callable[[], ScoredIds],
    settings: LocalSearchSettings,
) -> Iterator[tuple[int, float]]:
    seen = set(taken)
    while True:
        near = begun()
        rows = index.snapshot.rows_of("entities", [key for key, _ in near], settings.entity_key)
        _check_keys(index, [key for key, _ in near], rows, settings.entity_key)
        in_scope = _are_in_scope(index, rows, settings).tolist()
        for row, (_, score), is_in_scope in zip(rows.tolist(), near, in_scope, strict=True):
            if row >= 0 and row not in seen and is_in_scope:
                yield row, score
            seen.add(row)
        if len(near) < n:
            return
        n *= 4
        begun = index.snapshot.vectors(ENTITY_VECTORS).begin_search(vector, n)


def _are_in_scope(index: IndexReader, rows: np.ndarray, settings: LocalSearchSettings) -> np.ndarray:
    """Return which entities vectors may match, bool (n rows,); a row of -1 is none."""
    if settings.entity_scope == "all":
        return np.ones(len(rows), dtype=bool)
    positions, communities = index.snapshot.adjacency.of_all("entity_communities", np.maximum(rows, 0))
    is_read = index.column("communities", "level")[communities] <= settings.community_level
    return np.bincount(positions[is_read], minlength=len(rows)) > 0


def _check_keys(index: IndexReader, keys: Sequence[str], rows: np.ndarray, entity_key: str) -> None:
    if index.document_mask is not None and entity_key == "title":
        raise PipelineError(
            "filters need a vector table of entities by id: ask without filters, or run `graphrag-pipeline index` with "
            "`entity_key: id` of local search to embed again"
        )
    if len(keys) and (rows < 0).all() and index.document_mask is None:
        other = "title" if entity_key == "id" else "id"
        raise PipelineError(
            f"no vector of `{ENTITY_VECTORS}` belongs to an entity: none has a {entity_key} such as {keys[0]!r:.80}; "
            f"set `entity_key` of local search to {other}, or run `graphrag-pipeline index` to embed again"
        )


def _read_entity_vectors(index: IndexReader, rows: list[int], entity_key: str) -> np.ndarray:
    """Return the vectors of entities; with the bundled embedder, computing them costs less than looking them up."""
    found = index.snapshot.take("entities", rows, ["id", "title", "description"])
    if index.embedder.fingerprint == load_static_embedder().fingerprint:
        return index.embed([entity_text(record["title"], record["description"]) for record in found])
    return index.snapshot.vectors(ENTITY_VECTORS).vectors([record[entity_key] for record in found])
