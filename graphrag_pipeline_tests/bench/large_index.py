"""A large index made up from a seed: published as a snapshot without running the pipeline, for timing its readers.

The shape is by default that of issue 5: 100,000 entities, 494,000 relationships, 50,000 text units, 12,500 reports.
Names are made-up syllables; how often an entity is mentioned follows Zipf's law, and entity 0 is a hub with a tenth of
all relationships. Vectors are those of the bundled embedder, made a batch at a time. Keep out: measuring.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphrag_pipeline.indexing.embeddings import embedded_texts
from graphrag_pipeline.models.static_embeddings import load_static_embeddings
from graphrag_pipeline.settings_file import render_settings
from graphrag_pipeline.storage.candidates import freeze_candidate
from graphrag_pipeline.storage.snapshots import SnapshotStore
from graphrag_pipeline.tables import CONTRACT_TABLES, VECTOR_TABLES, stable_hash

HUB = 0
"""Row of the entity with a tenth of all relationships."""
_SYLLABLES = [
    *("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu"),
    *("na", "pe", "ri", "so", "tu", "va", "we", "xi", "yo", "zu"),
]
_VERBS = ["met", "hired", "wrote", "praised", "painted", "visited", "founded", "taught", "married", "followed"]
_NOUNS = ["harvest", "railway", "letter", "festival", "treaty", "workshop", "library", "garden", "election", "feast"]


@dataclass(frozen=True)
class Shape:
    """How large an index is."""

    n_entities: int = 100_000
    n_relationships: int = 494_000
    n_text_units: int = 50_000
    n_reports: int = 12_500
    n_units_per_document: int = 10
    n_sentences: int = 12


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
        name: _EmbeddedRows(embedded_texts(name, tables[table])) if tables[table].num_rows else np.zeros((0, 256))
        for name, (table, _) in VECTOR_TABLES.items()
    }
    store = SnapshotStore(root)
    snapshot = freeze_candidate(store, tables, vectors, embedder.fingerprint)
    store.point_at(snapshot)
    return snapshot


class _EmbeddedRows:
    """Vectors of texts, embedded when they are asked for."""

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
    others = np.arange(1, min(shape.n_relationships // 10, n - 1) + 1)
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
    verbs = random.integers(0, len(_VERBS), len(source)).tolist()
    nouns = random.integers(0, len(_NOUNS), (len(source), 2)).tolist()
    ends = zip(source.tolist(), target.tolist(), verbs, nouns, strict=True)
    return [f"{names[a]} {_VERBS[v]} {names[b]} after the {_NOUNS[n]} and the {_NOUNS[m]}." for a, b, v, (n, m) in ends]


def _write_texts(random: np.random.Generator, shape: Shape, sentences: list[str], unit_of: np.ndarray) -> list[str]:
    bounds = np.searchsorted(unit_of, np.arange(shape.n_text_units + 1)).tolist()
    filler = random.integers(0, len(_NOUNS), (shape.n_text_units, shape.n_sentences)).tolist()
    return [
        " ".join(
            [f"Text {unit} opens here.", *sentences[bounds[unit] : bounds[unit + 1]]]
            + [f"Nobody spoke of the {_NOUNS[noun]} for a long while." for noun in filler[unit]]
        )
        for unit in range(shape.n_text_units)
    ]


def _id(kind: str, number: int) -> str:
    return stable_hash(kind, str(number))


def _documents(shape: Shape, texts: list[str]) -> dict[str, Any]:
    size = shape.n_units_per_document
    numbers = range(-(-len(texts) // size))
    empty = [""] * len(numbers)
    return {
        "id": [_id("document", n) for n in numbers], "human_readable_id": list(numbers),
        "title": [f"report {n}" for n in numbers],
        "text": ["\n\n".join(texts[n * size : (n + 1) * size]) for n in numbers],
        "text_unit_ids": [[_id("unit", u) for u in range(n * size, min((n + 1) * size, len(texts)))] for n in numbers],
        "creation_date": pa.nulls(len(numbers), pa.string()), "metadata": ["{}"] * len(numbers), "path": empty,
        "record": empty,
    }  # fmt: skip


def _group(rows: np.ndarray, values: Sequence[str], n_rows: int) -> list[list[str]]:
    """The values of each row, in order."""
    order = np.argsort(rows, kind="stable")
    bounds = np.searchsorted(rows[order], np.arange(n_rows + 1)).tolist()
    taken = order.tolist()
    return [list(dict.fromkeys(values[i] for i in taken[bounds[r] : bounds[r + 1]])) for r in range(n_rows)]


def _text_units(
    shape: Shape, texts: list[str], source: np.ndarray, target: np.ndarray, unit_of: np.ndarray
) -> dict[str, Any]:
    numbers = range(shape.n_text_units)
    entity_ids = [_id("entity", int(row)) for row in np.r_[source, target]]
    starts, place = [], 0
    for number, text in enumerate(texts):
        place = 0 if number % shape.n_units_per_document == 0 else place
        starts.append(place)
        place += len(text) + 2
    return {
        "id": [_id("unit", n) for n in numbers], "human_readable_id": list(numbers), "text": texts,
        "n_tokens": [len(text) // 4 for text in texts],
        "document_id": [_id("document", n // shape.n_units_per_document) for n in numbers],
        "entity_ids": _group(np.r_[unit_of, unit_of], entity_ids, len(texts)),
        "relationship_ids": _group(unit_of, [_id("relationship", i) for i in range(len(unit_of))], len(texts)),
        "covariate_ids": pa.array([[]] * len(texts), pa.list_(pa.string())),
        "start": starts, "end": [start + len(text) for start, text in zip(starts, texts, strict=True)],
    }  # fmt: skip


def _entities(
    shape: Shape, names: list[str], degree: np.ndarray, source: np.ndarray, target: np.ndarray, unit_of: np.ndarray
) -> dict[str, Any]:
    unit_ids = [_id("unit", int(unit)) for unit in np.r_[unit_of, unit_of]]
    of_entity = _group(np.r_[source, target], unit_ids, shape.n_entities)
    types = ["PERSON"] * len(names)
    return {
        "id": [_id("entity", n) for n in range(len(names))], "human_readable_id": list(range(len(names))),
        "title": [name.upper() for name in names], "type": types,
        "description": [f"{name} is known for the {_NOUNS[n % len(_NOUNS)]}." for n, name in enumerate(names)],
        "text_unit_ids": of_entity, "frequency": [len(units) for units in of_entity], "degree": degree,
        "types": [[kind] for kind in types], "names": [[name] for name in names], "n_mentions": degree,
        "n_tokens": [18] * len(names),
    }  # fmt: skip


def _relationships(
    names: list[str],
    sentences: list[str],
    degree: np.ndarray,
    source: np.ndarray,
    target: np.ndarray,
    unit_of: np.ndarray,
) -> dict[str, Any]:
    ends = {"source": source.tolist(), "target": target.tolist()}
    n = len(sentences)
    return {
        "id": [_id("relationship", i) for i in range(n)], "human_readable_id": list(range(n)),
        **{end: [names[row].upper() for row in rows] for end, rows in ends.items()},
        "description": sentences, "weight": [1.0] * n, "combined_degree": degree[source] + degree[target],
        "text_unit_ids": [[_id("unit", unit)] for unit in unit_of.tolist()],
        **{f"{end}_id": [_id("entity", row) for row in rows] for end, rows in ends.items()},
        "n_mentions": [1] * n, "n_tokens": [24] * n,
    }  # fmt: skip


def _communities(shape: Shape, names: list[str]) -> dict[str, dict[str, Any]]:
    """Communities of one level over neighbouring rows, each with its report."""
    n = shape.n_reports
    parts = np.array_split(np.arange(len(names)), n)
    numbers = list(range(n))
    none = pa.array([[]] * n, pa.list_(pa.string()))
    childless = pa.array([[]] * n, pa.list_(pa.int64()))
    titles = [f"Around {names[part[0]]}" for part in parts]
    summaries = [f"{names[part[0]]} and {len(part) - 1} others met at the {_NOUNS[i % len(_NOUNS)]}."
                 for i, part in enumerate(parts)]  # fmt: skip
    shared = {"human_readable_id": numbers, "community": numbers, "level": [0] * n, "parent": [-1] * n,
              "children": childless, "title": titles, "period": pa.nulls(n, pa.string()),
              "size": [len(part) for part in parts]}  # fmt: skip
    return {
        "communities": {
            **shared, "id": [_id("community", i) for i in numbers],
            "entity_ids": [[_id("entity", int(row)) for row in part] for part in parts],
            "relationship_ids": none, "text_unit_ids": none,
        },
        "community_reports": {
            **shared, "id": [_id("report", i) for i in numbers], "summary": summaries,
            "full_content": [f"# {t}\n\n{s}" for t, s in zip(titles, summaries, strict=True)], "rank": [5.0] * n,
            "rating_explanation": [""] * n,
            "findings": pa.array([[]] * n, CONTRACT_TABLES["community_reports"].schema.field("findings").type),
            "full_content_json": ["{}"] * n, "is_verbatim": [False] * n, "is_fallback": [False] * n,
            "n_tokens": [40] * n, "n_summary_tokens": [20] * n,
        },
    }  # fmt: skip
