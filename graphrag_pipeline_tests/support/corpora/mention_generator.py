"""Generated mentions at scale: random names with a long-tailed distribution, one text unit after the other.

For benchmarks and for tests that need more rows than a table can be written with. Equal arguments give equal files.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphrag_pipeline.tables import ENTITY_MENTIONS, RELATIONSHIP_MENTIONS

_SYLLABLES = tuple(
    a + b
    for a in ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z"]
    for b in ["a", "e", "i", "o", "u", "ar", "en", "il", "on", "us"]
)
_TYPES = ("PERSON", "ORGANIZATION", "GEO", "EVENT", "UNKNOWN")
_PREDICATES = ("met", "was the partner of", None)
_BATCH = 250_000
_N_PARTNERS = 60  # of a name: about five mentions in two that a pair is found in again


def make_names(n_names: int, seed: int) -> list[str]:
    """Distinct names of two words of three or four syllables each."""
    random = np.random.default_rng(seed)
    names: dict[str, None] = {}
    while len(names) < n_names:
        for row in random.integers(len(_SYLLABLES), size=(n_names, 7)):
            parts = [_SYLLABLES[number] for number in row]
            names["".join(parts[:3]).title() + " " + "".join(parts[3:]).title()] = None
    return list(names)[:n_names]


def write_mentions(folder: Path, n_entity: int, n_relationship: int, n_names: int, seed: int = 0) -> None:
    """Write `folder/entity_mentions/*.parquet` and `folder/relationship_mentions/*.parquet`.

    Each text unit has about 30 entity mentions and n_relationship / n_entity times as many relationship mentions;
    four in five descriptions are distinct sentences of about 90 characters.
    """
    names = pa.array(make_names(n_names, seed))
    n_units = max(1, n_entity // 30)
    for table, n_rows, n_ends in ((ENTITY_MENTIONS, n_entity, 1), (RELATIONSHIP_MENTIONS, n_relationship, 2)):
        (folder / table.name).mkdir(parents=True, exist_ok=True)
        for number, start in enumerate(range(0, n_rows, _BATCH)):
            random = np.random.default_rng((seed, n_ends, number))
            batch = _make_batch(random, start, min(_BATCH, n_rows - start), n_rows, n_units, names, n_ends)
            pq.write_table(batch.cast(table.schema), folder / table.name / f"{number:03d}.parquet")


def _make_batch(
    random: np.random.Generator, start: int, n: int, n_rows: int, n_units: int, names: pa.Array, n_ends: int
) -> pa.Table:
    rows = np.arange(start, start + n)
    first = _draw(random, len(names), n)
    partner = (first * 7919 + 104_729 * _draw(random, _N_PARTNERS, n)) % len(names)
    ends = [names.take(pa.array(indices)) for indices in (first, partner)[:n_ends]]
    known = random.random(n) < 0.2
    serial = np.where(known, rows % 1000, rows)
    text = [
        f"In the year {number % 300 + 1700} they met {'again ' * (number % 3)}by the river, as letter {number} says."
        for number in serial.tolist()
    ]
    columns: dict[str, object] = {
        "text_unit_id": [f"{unit:032x}" for unit in (rows * n_units // n_rows).tolist()],
        "position": pa.array(rows % (1 << 30), pa.int32()),
    }
    if n_ends == 1:
        columns |= {"name": ends[0], "type": pa.array(_TYPES).take(pa.array(random.integers(len(_TYPES), size=n)))}
    else:
        columns |= {"source": ends[0], "target": ends[1]}
    columns["description"] = text
    if n_ends == 2:
        columns["strength"] = random.integers(1, 11, size=n).astype(float)
    columns |= {"start": pa.array(rows), "end": pa.array(rows + 90), "request_key": pa.nulls(n, pa.string())}
    if n_ends == 1:
        columns |= {"written": pa.nulls(n, pa.string()), "is_about": pa.nulls(n, pa.bool_())}
        columns["is_exact"] = pa.nulls(n, pa.bool_())
    else:
        columns["predicate"] = pa.array(_PREDICATES).take(pa.array(random.integers(len(_PREDICATES), size=n)))
    return pa.table(columns)


def _draw(random: np.random.Generator, n_names: int, n: int) -> np.ndarray:
    """Indices with a long tail: the commonest name about as common as in real text, most names rare."""
    return np.minimum((random.random(n) ** 3 * n_names).astype(np.int64), n_names - 1)
