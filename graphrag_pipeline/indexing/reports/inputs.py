"""Hashes of the inputs of report contexts; a context with equal inputs is not built again.

A hash covers the rows of all records inside a community in their order, the sub-communities that contain them, and the
reports of these. It does not cover settings, since reports made with other settings are not reused. Keep out: the
choice of records (`contexts.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.indexing.reports.community_rows import CommunityRows
from graphrag_pipeline.indexing.reports.context_text import ChildReport
from graphrag_pipeline.indexing.reports.records import GraphRecords, RecordRows


class InputHashes:
    """Hashes of the inputs of the contexts of a graph's communities."""

    def __init__(self, records: GraphRecords) -> None:
        self._entities = _hash_rows(records.entities)
        self._relationships = _hash_rows(records.relationships)
        self._claims = _hash_rows(records.claims)

    def of(self, community: CommunityRows, reports: Mapping[str, ChildReport]) -> str:
        """Hash the inputs of a community's context.

        Args:
            reports: reports of its sub-communities, by community id.

        Returns:
            32 hexadecimal digits.
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
    """Return (n, 16) uint8, the hash of each record."""
    digests = b"".join(bytes.fromhex(stable_hash(*values)) for values in records.iterate_values())
    return np.frombuffer(digests, dtype=np.uint8).reshape(-1, 16)
