"""Links from a page to communities. Keep out: the pages themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphrag_pipeline.query.index_reader import SnapshotReader
from graphrag_pipeline.reading.pages import CommunityLink


def link_communities(reader: SnapshotReader, numbers: Sequence[int]) -> tuple[CommunityLink, ...]:
    """Return links to the communities of some numbers that may be read, in the order of `numbers`."""
    rows = reader.rows_of_numbers("communities", "community", numbers)
    found = reader.snapshot.take("communities", rows[rows >= 0], ["community", "level", "size"])
    titles = _titles(reader, [record["community"] for record in found])
    return tuple(
        CommunityLink(one["community"], one["level"], one["size"], titles.get(one["community"], "")) for one in found
    )


def _titles(reader: SnapshotReader, numbers: Sequence[int]) -> dict[int, str]:
    """Return the titles of the reports of some communities."""
    is_wanted = np.isin(reader.column("community_reports", "community"), numbers)
    rows = np.flatnonzero(is_wanted & reader.row_mask("community_reports"))
    found = reader.snapshot.take("community_reports", rows, ["community", "title"])
    return {record["community"]: record["title"] for record in found}
