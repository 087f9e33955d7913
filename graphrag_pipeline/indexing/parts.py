"""Parts of the graph that can be computed apart from each other, with the same result as all at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def choose_part(rows: pa.Table, number: int, n_parts: int) -> pa.Table:
    """Return the rows of one part; rows of one `description_key`, a hexadecimal hash, are in one part.

    Args:
        number: of the part, from 0.
    """
    if n_parts == 1:
        return rows
    beginnings = pa.array([f"{value:02x}" for value in range(256)][number::n_parts])
    return rows.filter(pc.is_in(pc.utf8_slice_codeunits(rows["description_key"], 0, 2), value_set=beginnings))


def choose_subtrees(communities: pa.Table, number: int, n_parts: int) -> pa.Table:
    """Return the communities of one part: whole trees, from the coarsest level down, in parts of about equal size.

    Args:
        communities: `tables.COMMUNITIES`.
        number: of the part, from 0.
    """
    if n_parts == 1:
        return communities
    top: dict[str, str] = {}
    sizes: dict[str, int] = {}
    columns = (communities[name].to_pylist() for name in ("id", "parent_id", "level"))
    for identity, parent, _ in sorted(zip(*columns, strict=True), key=lambda row: (row[2], row[0])):
        top[identity] = top.get(parent, identity)
        sizes[top[identity]] = sizes.get(top[identity], 0) + 1
    shares, part_of = np.zeros(n_parts, dtype=np.int64), dict[str, int]()
    for tree in sorted(sizes, key=lambda tree: (-sizes[tree], tree)):
        part_of[tree] = int(shares.argmin())
        shares[part_of[tree]] += sizes[tree]
    return communities.filter(
        pa.array([part_of[top[identity]] == number for identity in communities["id"].to_pylist()])
    )
