"""All arrays of a snapshot that its contract tables define, in one folder: adjacency, lookups, mentions and layout.

Keep out: the sentences of the text units, which have a folder of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from graphrag_pipeline.publishing.adjacency import build_adjacency
from graphrag_pipeline.publishing.layout import LAYOUT_ARRAYS, build_layout
from graphrag_pipeline.storage.lookups import build_lookups, build_lookups_of_version_1
from graphrag_pipeline.storage.mentions import build_mentions


def build_arrays(tables: Mapping[str, pa.Table]) -> dict[str, np.ndarray]:
    """Return all arrays by name, for contract tables in file order."""
    arrays = build_adjacency(tables) | build_lookups(tables) | build_mentions(tables)
    return arrays | build_layout(tables, arrays.__getitem__)


def build_earlier_arrays(tables: Mapping[str, pa.Table]) -> Iterator[dict[str, np.ndarray]]:
    """Yield the arrays that earlier releases stored, the latest first, to repair their snapshots."""
    arrays = build_arrays(tables)
    del arrays["name_key_version"]
    yield (arrays := arrays | build_lookups_of_version_1(tables))
    yield {name: array for name, array in arrays.items() if name not in LAYOUT_ARRAYS}
