"""All arrays of a snapshot that its contract tables define, in one folder: adjacency, lookups, mentions and layout.

Keep out: the sentences of the text units, which have a folder of their own.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from graphrag_pipeline.publishing.adjacency import build_adjacency
from graphrag_pipeline.publishing.layout import build_layout
from graphrag_pipeline.storage.lookups import build_lookups
from graphrag_pipeline.storage.mentions import build_mentions


def build_arrays(tables: Mapping[str, pa.Table]) -> dict[str, np.ndarray]:
    """Return all arrays by name, for contract tables in file order."""
    arrays = build_arrays_before_layout(tables)
    return arrays | build_layout(tables, arrays.__getitem__)


def build_arrays_before_layout(tables: Mapping[str, pa.Table]) -> dict[str, np.ndarray]:
    """Return the arrays that releases before the layout stored."""
    return build_adjacency(tables) | build_lookups(tables) | build_mentions(tables)
