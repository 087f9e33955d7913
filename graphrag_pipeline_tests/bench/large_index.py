"""A large index generated from a seed and published without running the pipeline, for timing its readers.

    python -m graphrag_pipeline_tests.bench.large_index FOLDER N_ENTITIES

The default shape is 100,000 entities, 494,000 relationships, 50,000 text units, 12,500 reports.
Names are random syllables. Mentions follow Zipf's law. Entity 0 is a hub with 50,000 relationships. The bundled
embedder makes the vectors in batches. Relationships have no vectors, because no search uses them. Keep out: measuring.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.indexing.embeddings import embedded_texts
from graphrag_pipeline.publishing.candidates import freeze_candidate
from graphrag_pipeline.settings.rendering import render_settings
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.storage.vectors.folders import SEARCHED
from graphrag_pipeline.tables import CONTRACT_TABLES, VECTOR_TABLES

LARGE_FROM = 300_000
"""Entities from which the texts are shorter, because all of them are in memory while the index is made."""
HUB = 0
"""Row of the entity with most relationships."""
_SYLLABLES = [
    *("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu"),
    *("na", "pe", "ri", "so", "tu", "va", "we", "xi", "yo", "zu"),
]
VERBS = ["met", "hired", "wrote", "praised", "painted", "visited", "founded", "taught", "married", "followed"]
NOUNS = ["harvest", "railway", "letter", "festival", "treaty", "workshop", "library", "garden", "election", "feast"]


@dataclass(frozen=True)
class Shape:
    """The size of an index.

    Attributes:
        n_of_hub: relationships of the hub, at most a tenth of all.
        n_sentences: of a text unit, besides one per relationship.
    """

    n_entities: int = 100_000
    n_relationships: int = 494_000
    n_text_units: int = 50_000
    n_reports: int = 12_500
    n_of_hub: int = 50_000
    n_units_per_document: int = 10
    n_sentences: int = 12

    @classmethod
    def of_size(cls, n_entities: int) -> Shape:
        """Return the default shape with another number of entities."""
        scale = n_entities / cls.n_entities
        counts = (round(scale * n) for n in (cls.n_relationships, cls.n_text_units, cls.n_reports))
        return cls(n_entities, *counts, n_sentences=4 if n_entities >= LARGE_FROM else cls.n_sentences)


def name_of(row: int) -> str:
    """The name of an entity: two words, distinct for each row below 64 million."""
    digits = [(row // 20**place) % 20 for place in range(6)]
    first, last = ("".join(_SYLLABLES[digit] for digit in part) for part in (digits[:3], digits[3:]))
    return f"{first.title()} {last.title()}"


def publish_large_index(root: Path, shape: Shape | None = None, seed: int = 7) -> str:
    """Make a root with a published snapshot of this shape; returns the snapshot's id."""
    tables = make_tables(shape or Shape(), seed)
    root.mkdir(parents=True, exist_ok=True)
    (root / "settings.yaml").write_text(render_settings(), encoding="utf-8")
    embedder = load_static_embeddings()
    vectors = {
        name: _EmbeddedRows(embedded_texts(name, tables[table])) if name in SEARCHED else _no_vectors(tables[table])
        for name, (table, _) in VECTOR_TABLES.items()
    }
    store = SnapshotStore(root)
    snapshot = freeze_candidate(store, tables, vectors, embedder.fingerprint)
    store.point_at(snapshot)
    return snapshot


def _no_vectors(table: pa.Table) -> np.ndarray:
    """Zeros, for a table that no search reads by vector."""
    return np.broadcast_to(np.zeros(256, dtype=np.float32), (table.num_rows, 256))


class _EmbeddedRows:
    """Vectors of texts, embedded on request."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self._texts), 256

    def __getitem__(self, rows: Any) -> np.ndarray:
        return load_static_embeddings().embed([self._texts[row] for row in np.arange(len(self._texts))[rows]])


def make_tables(shape: Shape, seed: int) -> dict[str, pa.Table]:
    """All contract tables."""
    random = np.random.default_rng(seed)
    source, target = _draw_pairs(random, shape)
    unit_of = random.integers(0, shape.n_text_units, shape.n_relationships)
    order = np.argsort(unit_of, kind="stable")
    source, target, unit_of = source[order], target[order], unit_of[order]
    names = [name_of(row) for row in range(shape.n_entities)]
    sentences = _write_sentences(random, names, source, target)
    texts = _write_texts(random, shape, sentences, unit_of)
    degree = np.bincount(np.r_[source, target], minlength=shape.n_entities)
    columns = {
        "documents": _documents(shape, texts),
        "text_units": _text_units(shape, texts, source, target, unit_of),
        "entities": _entities(shape, names, degree, source, target, unit_of),
        "relationships": _relationships(names, sentences, degree, source, target, unit_of),
        **_communities(shape, names),
    }
    return {
        name: table.sort(pa.table(columns[name])) if name in columns else table.empty()
        for name, table in CONTRACT_TABLES.items()
    }


def _draw_pairs(random: np.random.Generator, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Distinct pairs of entities, the lower row first: the hub's, then pairs by Zipf's law."""
    n = shape.n_entities
    others = np.arange(1, min(shape.n_of_hub, shape.n_relationships // 10, n - 1) + 1)
    weights = 1 / np.arange(1, n) ** 0.6
    drawn = 1 + random.choice(n - 1, size=(3 * shape.n_relationships, 2), p=weights / weights.sum())
    drawn.sort(axis=1)
    drawn = drawn[drawn[:, 0] != drawn[:, 1]]
    keys, first = np.unique(drawn[:, 0] * n + drawn[:, 1], return_index=True)
    keys = keys[np.argsort(first)][: shape.n_relationships - len(others)]
    return np.r_[np.zeros(len(others), dtype=np.int64), keys // n], np.r_[others, keys % n]


def _write_sentences(
    random: np.random.Generator, names: list[str], source: np.ndarray, target: np.ndarray
) -> list[str]:
    verbs = random.integers(0, len(VERBS), len(source)).tolist()
    nouns = random.integers(0, len(NOUNS), (len(source), 2)).tolist()
    ends = zip(source.tolist(), target.tolist(), verbs, nouns, strict=True)
    return [f"{names[a]} {VERBS[v]} {names[b]} after the {NOUNS[n]} and the {NOUNS[m]}." for a, b, v, (n, m) in ends]


def _write_texts(random: np.random.Generator, shape: Shape, sentences: list[str], unit_of: np.ndarray) -> list[str]:
    bounds = np.searchsorted(unit_of, np.arange(shape.n_text_units + 1)).tolist()
    filler = random.integers(0, len(NOUNS), (shape.n_text_units, shape.n_sentences)).tolist()
    return [
        " ".join(
            [f"Text {unit} opens here.", *sentences[bounds[unit] : bounds[unit + 1]]]
            + [f"Nobody spoke of the {NOUNS[noun]} for a long while." for noun in filler[unit]]
        )
        for unit in range(shape.n_text_units)
    ]


def _ids(kind: str, n: int) -> pa.Array:
    """Ids of the records of a kind, by number."""
    return pa.array([stable_hash(kind, str(number)) for number in range(n)], pa.string())


def _documents(shape: Shape, texts: list[str]) -> dict[str, Any]:
    size = shape.n_units_per_document
    starts = np.arange(0, len(texts), size)
    numbers = range(len(starts))
    empty = [""] * len(numbers)
    return {
        "id": _ids("document", len(numbers)), "human_readable_id": list(numbers),
        "title": [f"report {n}" for n in numbers],
        "text": ["\n\n".join(texts[start : start + size]) for start in starts],
        "text_unit_ids": _lists(np.append(starts, len(texts)), _ids("unit", len(texts))),
        "creation_date": pa.nulls(len(numbers), pa.string()), "metadata": ["{}"] * len(numbers), "path": empty,
        "record": empty,
    }  # fmt: skip


def _group(rows: np.ndarray, values: np.ndarray, ids: pa.Array, n_rows: int) -> pa.ListArray:
    """Ids of the distinct values of each row, in order of appearance."""
    _, first = np.unique(rows * np.int64(len(ids)) + values, return_index=True)
    first = first[np.lexsort((first, rows[first]))]
    bounds = np.searchsorted(rows[first], np.arange(n_rows + 1))
    return _lists(bounds, ids.take(pa.array(values[first])))


def _lists(bounds: np.ndarray, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), values)


def _text_units(
    shape: Shape, texts: list[str], source: np.ndarray, target: np.ndarray, unit_of: np.ndarray
) -> dict[str, Any]:
    n = len(texts)
    starts, place = [], 0
    for number, text in enumerate(texts):
        place = 0 if number % shape.n_units_per_document == 0 else place
        starts.append(place)
        place += len(text) + 2
    entity_ids, relationship_ids = _ids("entity", shape.n_entities), _ids("relationship", len(unit_of))
    documents = np.arange(n) // shape.n_units_per_document
    return {
        "id": _ids("unit", n), "human_readable_id": np.arange(n), "text": texts,
        "n_tokens": [len(text) // 4 for text in texts],
        "document_id": _ids("document", int(documents[-1]) + 1).take(pa.array(documents)),
        "entity_ids": _group(np.r_[unit_of, unit_of], np.r_[source, target], entity_ids, n),
        "relationship_ids": _group(unit_of, np.arange(len(unit_of)), relationship_ids, n),
        "covariate_ids": _lists(np.zeros(n + 1), pa.array([], pa.string())),
        "start": starts, "end": [start + len(text) for start, text in zip(starts, texts, strict=True)],
        "header_start": pa.nulls(n, pa.int64()), "header_end": pa.nulls(n, pa.int64()),
        "heading_path": pa.nulls(n, pa.list_(pa.string())), "heading_levels": pa.nulls(n, pa.list_(pa.int8())),
        "first_page": pa.nulls(n, pa.int32()), "last_page": pa.nulls(n, pa.int32()),
    }  # fmt: skip


def _entities(
    shape: Shape, names: list[str], degree: np.ndarray, source: np.ndarray, target: np.ndarray, unit_of: np.ndarray
) -> dict[str, Any]:
    n = len(names)
    unit_ids = _ids("unit", shape.n_text_units)
    of_entity = _group(np.r_[source, target], np.r_[unit_of, unit_of], unit_ids, n)
    types = pa.array(["PERSON"] * n)
    return {
        "id": _ids("entity", n), "human_readable_id": np.arange(n),
        "title": [name.upper() for name in names], "type": types,
        "description": [f"{name} is known for the {NOUNS[row % len(NOUNS)]}." for row, name in enumerate(names)],
        "text_unit_ids": of_entity, "frequency": np.diff(of_entity.offsets), "degree": degree,
        "types": _lists(np.arange(n + 1), types), "names": _lists(np.arange(n + 1), pa.array(names)),
        "n_mentions": degree, "n_tokens": np.full(n, 18),
    }  # fmt: skip


def _relationships(
    names: list[str],
    sentences: list[str],
    degree: np.ndarray,
    source: np.ndarray,
    target: np.ndarray,
    unit_of: np.ndarray,
) -> dict[str, Any]:
    n = len(sentences)
    ends = {"source": pa.array(source), "target": pa.array(target)}
    titles, entity_ids = pa.array([name.upper() for name in names]), _ids("entity", len(names))
    unit_ids = _ids("unit", int(unit_of.max()) + 1)
    return {
        "id": _ids("relationship", n), "human_readable_id": np.arange(n),
        **{end: titles.take(rows) for end, rows in ends.items()},
        "description": sentences, "weight": np.ones(n), "combined_degree": degree[source] + degree[target],
        "text_unit_ids": _lists(np.arange(n + 1), unit_ids.take(pa.array(unit_of))),
        **{f"{end}_id": entity_ids.take(rows) for end, rows in ends.items()},
        "n_mentions": np.ones(n, dtype=np.int64), "n_tokens": np.full(n, 24), "predicates": pa.nulls(n),
    }  # fmt: skip


def _communities(shape: Shape, names: list[str]) -> dict[str, dict[str, Any]]:
    """Communities of one level over neighbouring rows, each with its report."""
    n = shape.n_reports
    parts = np.array_split(np.arange(len(names)), n)
    numbers = list(range(n))
    none = pa.array([[]] * n, pa.list_(pa.string()))
    childless = pa.array([[]] * n, pa.list_(pa.int64()))
    titles = [f"Around {names[part[0]]}" for part in parts]
    summaries = [f"{names[part[0]]} and {len(part) - 1} others met at the {NOUNS[i % len(NOUNS)]}."
                 for i, part in enumerate(parts)]  # fmt: skip
    shared = {"human_readable_id": numbers, "community": numbers, "level": [0] * n, "parent": [-1] * n,
              "children": childless, "title": titles, "period": pa.nulls(n, pa.string()),
              "size": [len(part) for part in parts]}  # fmt: skip
    return {
        "communities": {
            **shared, "id": _ids("community", n),
            "entity_ids": _lists(np.cumsum([0, *map(len, parts)]), _ids("entity", len(names))),
            "relationship_ids": none, "text_unit_ids": none,
        },
        "community_reports": {
            **shared, "id": _ids("report", n), "summary": summaries,
            "full_content": [f"# {t}\n\n{s}" for t, s in zip(titles, summaries, strict=True)], "rank": [5.0] * n,
            "rating_explanation": [""] * n,
            "findings": pa.array([[]] * n, CONTRACT_TABLES["community_reports"].schema.field("findings").type),
            "full_content_json": ["{}"] * n, "is_verbatim": [False] * n, "is_fallback": [False] * n,
            "n_tokens": [40] * n, "n_summary_tokens": [20] * n,
        },
    }  # fmt: skip


if __name__ == "__main__":
    publish_large_index(Path(sys.argv[1]), Shape.of_size(int(sys.argv[2])))
