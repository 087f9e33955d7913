"""Duplicate entities: by name, exactly, and by vector, for a sample.

By name, all entities are compared. Two titles are equal if their letters and digits are, or their sorted words.
Accents, case, possessive endings and a leading article do not count.

By vector, evenly spread entities are compared with all: by a matrix product below `MAX_MATRIX_ROWS` entities, above by
searches in the vector store. So the time does not grow with the square of the entities, and the share of the sample
estimates that of the index. Two entities count as duplicates by vector if their cosine and their types say so, and
their descriptions differ: one sentence that names two people describes both, and would make them near. Keep out:
merging.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from graphrag_pipeline.evaluation.index_quality.figures import QualityFigure, not_measured, share_of, spread_rows
from graphrag_pipeline.storage.snapshots import Snapshot

MAX_MATRIX_ROWS = 20_000
"""Entities whose vectors are held in memory at once: 20 MB with 256 dimensions."""
N_COMPARED = 500
"""Entities, evenly spread, whose nearest entities by vector are looked up; the share is known within 2 %."""
DUPLICATE_SIMILARITY = 0.95
"""Minimum cosine at which two entities of one type count as duplicates by vector."""
_VECTORS = "default-entity-description"
_N_NEIGHBOURS = 8
_BLOCK_ROWS = 256
_COLUMNS = ["id", "title", "type", "description"]
_WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['\u2019]s\b")
_ARTICLES = frozenset(("the", "a", "an"))


def find_duplicates_by_name(titles: list[str]) -> list[list[str]]:
    """Return groups of at least two titles that differ only in spelling, each sorted, in the order of the first."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for title in titles:
        for key in _name_keys(title):
            groups[key].append(title)
    distinct = {tuple(sorted(set(group))) for group in groups.values()}
    return [list(group) for group in sorted(distinct) if len(group) > 1]


def _name_keys(title: str) -> set[str]:
    """Return the joined words of a title, and the sorted ones."""
    folded = title.casefold()
    if not folded.isascii():
        folded = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    words = _WORD.findall(_POSSESSIVE.sub("", folded))
    words = words[1:] if len(words) > 1 and words[0] in _ARTICLES else words
    return {"".join(words), " ".join(sorted(words))} - {""}


def measure_duplicates(snapshot: Snapshot) -> Iterator[QualityFigure]:
    """Yield the shares of duplicates by name and by vector.

    Raises:
        PipelineError: the vector store cannot be read.
    """
    groups = find_duplicates_by_name(snapshot.table("entities")["title"].to_pylist())
    shown = [" = ".join(group[:3]) for group in groups]
    n_found = len({title for group in groups for title in group})
    yield share_of("duplicates_by_name", n_found, snapshot.n_rows("entities"), "entities", shown)
    yield _measure_by_vector(snapshot)


def _measure_by_vector(snapshot: Snapshot) -> QualityFigure:
    entities = snapshot.table("entities")
    rows = spread_rows(entities.num_rows, N_COMPARED)
    if not rows:
        return not_measured("duplicates_by_vector", "the index has no entities")
    near = _find_by_product(snapshot, rows) if entities.num_rows < MAX_MATRIX_ROWS else _find_by_search(snapshot, rows)
    pairs = (_name_pair(snapshot, row, nearest) for row, nearest in zip(rows, near, strict=True))
    found = [pair for pair in pairs if pair]
    return share_of("duplicates_by_vector", len(found), len(rows), "compared entities", found)


def _find_by_product(snapshot: Snapshot, rows: list[int]) -> Iterator[list[tuple[int, float]]]:
    """Yield the entity rows nearest to each of `rows` with their cosines, best first, by comparing with all."""
    ids = snapshot.table("entities")["id"].to_pylist()
    vectors = snapshot.vectors(_VECTORS).vectors(ids)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    for start in range(0, len(rows), _BLOCK_ROWS):
        block = rows[start : start + _BLOCK_ROWS]
        for row, cosines in zip(block, vectors[block] @ vectors.T, strict=True):
            best = np.argpartition(-cosines, min(_N_NEIGHBOURS, len(ids) - 1))[: _N_NEIGHBOURS + 1]
            yield sorted(((int(i), float(cosines[i])) for i in best if i != row), key=lambda pair: (-pair[1], pair[0]))


def _find_by_search(snapshot: Snapshot, rows: list[int]) -> Iterator[list[tuple[int, float]]]:
    """Yield what `_find_by_product` yields, by a search in the vector store for each row."""
    collection = snapshot.vectors(_VECTORS)
    ids = [entity["id"] for entity in snapshot.take("entities", rows, ["id"])]
    for row, vector in zip(rows, collection.vectors(ids), strict=True):
        near = dict(collection.search(vector, _N_NEIGHBOURS + 1))
        found = snapshot.rows_of("entities", list(near))
        yield [(int(i), cosine) for i, cosine in zip(found, near.values(), strict=True) if i not in (-1, row)]


def _name_pair(snapshot: Snapshot, row: int, near: list[tuple[int, float]]) -> str:
    """Return "TITLE = OTHER (cosine)" for the nearest duplicate of an entity; "" without one."""
    cosines = [(other, cosine) for other, cosine in near if cosine >= DUPLICATE_SIMILARITY]
    if not cosines:
        return ""
    entity, *others = snapshot.take("entities", [row, *(other for other, _ in cosines)], _COLUMNS)
    for other, (_, cosine) in zip(others, cosines, strict=True):
        if other["type"] == entity["type"] and other["description"] != entity["description"]:
            return f"{entity['title']} = {other['title']} ({cosine:.3f})"
    return ""
