"""All that a report context is chosen from, as one hash: where that is what it was, the context need not be built.

The hash covers the rows of all records inside in their order, which sub-communities hold them, and the reports of
these. Settings have no part: reports made with others are not known. Keep out: what is chosen (`report_contexts.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.indexing.reports.contexts import ChildReport
from graphrag_pipeline.indexing.reports.records import CommunityRows, GraphRecords, RecordRows


class InputHashes:
    """Hashes of what the contexts of a graph's communities are chosen from."""

    def __init__(self, records: GraphRecords) -> None:
        self._entities = _hash_rows(records.entities)
        self._relationships = _hash_rows(records.relationships)
        self._claims = _hash_rows(records.claims)

    def of(self, community: CommunityRows, reports: Mapping[str, ChildReport]) -> str:
        """32 hex digits.

        Args:
            reports: of its sub-communities, by community id.
        """
        digest = hashlib.sha256()
        for hashes, rows, child_of in (
            (self._entities, community.entities, community.child_of_entity),
            (self._relationships, community.relationships, community.child_of_relationship),
            (self._claims, community.claims, community.child_of_claim),
        ):
            digest.update(np.array([len(rows)], dtype="<i8").tobytes())
            digest.update(hashes[rows].tobytes())
            digest.update(child_of.astype("<i8").tobytes())
        for child in community.children:
            digest.update(stable_hash(child, reports[child].text).encode())
        return digest.hexdigest()[:32]


def _hash_rows(records: RecordRows) -> np.ndarray:
    """(n, 16) bytes, one row per record."""
    digests = b"".join(bytes.fromhex(stable_hash(*values)) for values in records.iterate_values())
    return np.frombuffer(digests, dtype=np.uint8).reshape(-1, 16)
