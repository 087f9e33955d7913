"""Human-readable numbers that changed communities keep.

The id of a community is a hash of its members. A community with a new member has a new id and would get a new number
in `record_numbers`. Two communities of a level match if their Jaccard similarity |A & B| / |A | B| is over 0.5. As
communities of a level share no entity, no community matches two others. Keep out: assigning new numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.arrow_columns import list_pairs, one_chunk, positions

if TYPE_CHECKING:
    from scipy import sparse


def carry_community_numbers(numbers: pa.Table, old: pa.Table, new: pa.Table) -> pa.Table:
    """Give the number of each community that is gone to the new community that matches it.

    Args:
        numbers: `record_numbers` of the snapshot that holds `old`.
        old, new: communities; need `id`, `level` and `entity_ids`.

    Returns:
        `numbers`, with the ids of matching new communities in place of the old ids.
    """
    gone = old.filter(pc.invert(pc.is_in(old["id"], value_set=one_chunk(new["id"]))))
    come = new.filter(pc.invert(pc.is_in(new["id"], value_set=one_chunk(old["id"]))))
    gone_rows, come_rows = match_communities(gone, come)
    found = positions(numbers["id"], gone["id"].take(pa.array(gone_rows)))
    found[~np.asarray(pc.equal(numbers["kind"], "community"))] = -1
    is_matched = pa.array(found >= 0)
    renamed = come["id"].take(pa.array(come_rows[found[found >= 0]]))
    ids = pc.replace_with_mask(one_chunk(numbers["id"]), is_matched, one_chunk(renamed))
    return numbers.set_column(numbers.schema.get_field_index("id"), "id", ids)


def match_communities(old: pa.Table, new: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Return (old row, new row) of each pair of one level with Jaccard similarity over 0.5."""
    # Members are 0/1 matrices (communities, entities), so their product counts the common entities of each pair.
    # |A & B| / |A | B| > 1/2 is 2 |A & B| > |A| + |B| - |A & B|, in integers.
    entities = pc.unique(pc.list_flatten(one_chunk(old["entity_ids"])))
    old_members, new_members = (_members(rows, entities) for rows in (old, new))
    common = (old_members @ new_members.T).tocoo()
    old_sizes, new_sizes = (np.asarray(pc.list_value_length(rows["entity_ids"])) for rows in (old, new))
    rows, columns = common.row, common.col
    is_level = old["level"].to_numpy()[rows] == new["level"].to_numpy()[columns]
    is_match = is_level & (2 * common.data > old_sizes[rows] + new_sizes[columns] - common.data)
    return rows[is_match], columns[is_match]


def _members(communities: pa.Table, entities: pa.Array) -> sparse.csr_matrix:
    from scipy import sparse

    rows, columns = list_pairs(communities["entity_ids"], pa.chunked_array([entities]))
    return sparse.csr_matrix((np.ones(len(rows), np.int64), (rows, columns)), (len(communities), len(entities)))
