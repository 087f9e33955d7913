"""Choice of text units for tuning: random, by bucket, nearest to the mean vector, or nearest to the means of clusters.

Each choice depends on the seed and the texts only. A text unit has a place in an order drawn from the seed and its id,
so a new document changes few places. Keep out: what is done with the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from graphrag_pipeline.identity import bucket_of, stable_hash
from graphrag_pipeline.models.ports import Embedder
from graphrag_pipeline.settings.search_names import SampleMethod

MAX_EMBEDDED = 2_000
"""Most text units whose vectors are compared; the first ones in the drawn order."""
_MAX_ROUNDS = 50


@dataclass(frozen=True)
class SampledUnit:
    """A text unit of the sample."""

    id: str
    document_id: str
    text: str
    n_tokens: int


def choose_units(
    units: pa.Table,
    method: SampleMethod,
    size: int,
    seed: int,
    n_buckets: int,
    embedder: Callable[[], Embedder],
    excluded: Collection[str] = (),
) -> list[SampledUnit]:
    """Return at most `size` text units with different texts, by id.

    Args:
        units: needs `id`, `document_id`, `text` and `n_tokens`.
        n_buckets: of the root, for `bucket`.
        embedder: gives the embedder for `centroid` and `clusters`.
        excluded: ids that are not chosen.
    """
    drawn = _draw(units, seed, excluded)
    if method == "random" or size >= len(drawn):
        chosen = drawn[:size]
    elif method == "bucket":
        chosen = _take_turns(drawn, [bucket_of(unit.document_id, n_buckets) for unit in drawn], size)
    else:
        drawn = drawn[:MAX_EMBEDDED]
        vectors = embedder().embed([unit.text for unit in drawn])
        rows = nearest_to_mean(vectors, size) if method == "centroid" else nearest_to_clusters(vectors, size)
        chosen = [drawn[row] for row in rows]
    return sorted(chosen, key=lambda unit: unit.id)


def _draw(units: pa.Table, seed: int, excluded: Collection[str]) -> list[SampledUnit]:
    """Return all text units with a letter and a new text, in the drawn order."""
    rows = units.select(["id", "document_id", "text", "n_tokens"]).to_pylist()
    rows = [row for row in rows if row["id"] not in excluded and any(map(str.isalpha, row["text"]))]
    rows.sort(key=lambda row: stable_hash("tuning", str(seed), row["id"]))
    distinct = {row["text"]: row for row in reversed(rows)}
    return [SampledUnit(**row) for row in rows if distinct[row["text"]] is row]


def _take_turns(units: Sequence[SampledUnit], groups: Sequence[str], size: int) -> list[SampledUnit]:
    """Return units of the groups in turn; a group without further units is passed over."""
    turn: dict[str, int] = {}
    turns = []
    for group in groups:
        turns.append((turn.setdefault(group, 0), group))
        turn[group] += 1
    order = sorted(range(len(units)), key=turns.__getitem__)
    return [units[place] for place in order[:size]]


def nearest_to_mean(vectors: np.ndarray, size: int) -> list[int]:
    """Return the rows nearest to the mean of all vectors, nearest first."""
    distances = np.linalg.norm(vectors - vectors.mean(axis=0), axis=1)
    return np.argsort(distances, kind="stable")[:size].tolist()


def nearest_to_clusters(vectors: np.ndarray, size: int) -> list[int]:
    """Return the row nearest to each mean of `size` clusters (k-means, Lloyd 1982), without repeats.

    The first mean is the first row; each further one is the row that is farthest from the means so far.
    """
    means = vectors[_spread_rows(vectors, size)]
    for _ in range(_MAX_ROUNDS):
        labels = _squared_distances(vectors, means).argmin(axis=1)
        moved = np.stack([vectors[labels == k].mean(axis=0) if (labels == k).any() else means[k] for k in range(size)])
        if np.array_equal(moved, means):
            break
        means = moved
    distances = _squared_distances(vectors, means)
    chosen: dict[int, None] = {}
    for k in range(size):
        chosen[next(row for row in np.argsort(distances[:, k], kind="stable").tolist() if row not in chosen)] = None
    return list(chosen)


def _spread_rows(vectors: np.ndarray, size: int) -> list[int]:
    rows = [0]
    nearest = _squared_distances(vectors, vectors[:1])[:, 0]
    while len(rows) < size:
        nearest[rows] = -1
        rows.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, _squared_distances(vectors, vectors[rows[-1:]])[:, 0])
    return rows


def _squared_distances(vectors: np.ndarray, means: np.ndarray) -> np.ndarray:
    squares = (vectors**2).sum(axis=1)[:, None] - 2 * vectors @ means.T + (means**2).sum(axis=1)[None, :]
    return np.maximum(squares, 0.0)
