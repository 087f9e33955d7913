"""How many text units a run brings to the graph: what the guesses of `estimates.py` are scaled from.

A guess is meant to be on the upper side: where it cannot be told which text units are new, all that may be are counted.
Keep out: calls, tokens and money.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.indexing.text_units import split_documents
from graphrag_pipeline.inputs.documents import build_documents
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.pipeline.staleness import StalePartition

_MENTIONS = ("entity_mentions", "relationship_mentions")


class ChangedUnits:
    """Text units as they will be after a run, and those among them that are new to the graph.

    Args:
        stale: what the run would compute: stage -> partition -> why.
    """

    def __init__(self, root: Root, stale: Mapping[str, Mapping[str, StalePartition]]) -> None:
        self._root = root
        self._stale = stale
        self._n_rows: dict[str, int] = {}
        self._n_new: int | None = None

    def read(self, stage: str) -> pa.Table:
        """Text units of the buckets that are stale for a stage."""
        return pa.concat_tables([self._units(bucket) for bucket in self._stale[stage]])

    def count_all(self) -> int:
        """Text units of the whole corpus."""
        return sum(self._count(bucket) for bucket in STAGES["text_units"].partitions(self._root.settings))

    def count_new(self) -> int:
        """Those that a stale graph has not seen, all if that cannot be told; 0 if it is not stale."""
        if self._n_new is None:
            graph = self._stale.get("graph", {}).get(WHOLE)
            head = self._root.tables.head("entities")
            if graph is None:
                self._n_new = 0
            elif head is None or graph.changes:
                self._n_new = self.count_all()
            else:
                buckets = STAGES["extracted_graph"].partitions(self._root.settings)
                self._n_new = sum(self._count_new(bucket, head.inputs) for bucket in buckets) or self.count_all()
        return self._n_new

    def mentions_per_unit(self) -> float:
        """Mentions of entities and relationships per text unit in the buckets that are extracted; 0 without any."""
        n_mentions = n_units = 0
        for bucket in STAGES["text_units"].partitions(self._root.settings):
            heads = [self._root.tables.head(table, bucket) for table in (*_MENTIONS, "text_units")]
            if all(heads):
                *mentions, units = [head.n_rows for head in heads if head]
                n_mentions, n_units = n_mentions + sum(mentions), n_units + units
        return n_mentions / n_units if n_units else 0.0

    def _count_new(self, bucket: str, seen: Mapping[str, str | None]) -> int:
        """Those of a bucket that a graph made of some versions of the mentions has not seen."""
        extraction = self._stale.get("extracted_graph", {}).get(bucket)
        heads = {f"{table}/{bucket}": self._root.tables.head(table, bucket) for table in _MENTIONS}
        is_seen = all(head and seen.get(name) == head.data_version for name, head in heads.items())
        if not is_seen or (extraction and extraction.changes):
            return self._count(bucket)
        return self._count_uncovered(bucket) if extraction else 0

    def _count_uncovered(self, bucket: str) -> int:
        """Text units without a mention, and those that are gone but have one; all if there are none of both."""
        units, mentions = self._units(bucket)["id"], self._root.tables.read("entity_mentions", bucket)["text_unit_id"]
        covered = pc.unique(mentions)
        n_uncovered = pc.sum(pc.invert(pc.is_in(units, covered))).as_py() or 0
        n_gone = pc.sum(pc.invert(pc.is_in(covered, units))).as_py() or 0
        return n_uncovered + n_gone or len(units)

    def _count(self, bucket: str) -> int:
        if bucket not in self._n_rows:
            head = self._root.tables.head("text_units", bucket)
            self._n_rows[bucket] = head.n_rows if head and self._is_split(bucket) else self._units(bucket).num_rows
        return self._n_rows[bucket]

    def _units(self, bucket: str) -> pa.Table:
        if self._is_split(bucket):
            return self._root.tables.read("text_units", bucket)
        documents = build_documents(list(self._root.read_input({bucket})))
        units = split_documents(documents, self._root.settings.text_units)
        self._n_rows[bucket] = units.num_rows
        return units

    def _is_split(self, bucket: str) -> bool:
        return not any(bucket in self._stale.get(name, {}) for name in ("documents", "text_units"))
