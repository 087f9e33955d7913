"""Counts of text units that a run adds to the graph, from which `estimates.py` scales.

Counts are upper bounds: if it is not known which text units are new, all that may be new count.
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
    """Text units after a run, and those among them that are new to the graph.

    Args:
        stale: partitions that the run would compute: stage -> partition -> reason.
    """

    def __init__(self, root: Root, stale: Mapping[str, Mapping[str, StalePartition]]) -> None:
        self._root = root
        self._stale = stale
        self._n_rows: dict[str, int] = {}
        self._n_new: int | None = None

    def read(self, stage: str) -> pa.Table:
        """Return the text units of the buckets that are stale for a stage."""
        return pa.concat_tables([self._units(bucket) for bucket in self._stale[stage]])

    def count_all(self) -> int:
        """Return the number of text units of the whole corpus."""
        return sum(self._count(bucket) for bucket in STAGES["text_units"].partitions(self._root.settings))

    def count_new(self) -> int:
        """Return the number of text units new to a stale graph, all if not known; 0 if the graph is fresh."""
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

    def sample_documents(self, n_characters: int) -> pa.Table:
        """Return the documents of the first buckets that together have so many characters: a fair sample."""
        parts: list[pa.Table] = []
        for bucket in STAGES["documents"].partitions(self._root.settings):
            parts.append(self._documents(bucket))
            n_characters -= sum(map(len, parts[-1]["text"].to_pylist()))
            if n_characters <= 0:
                break
        return pa.concat_tables(parts)

    def mentions_per_unit(self) -> float:
        """Return mentions of entities and relationships per text unit of extracted buckets; 0 without any."""
        n_mentions = n_units = 0
        for bucket in STAGES["text_units"].partitions(self._root.settings):
            heads = [self._root.tables.head(table, bucket) for table in (*_MENTIONS, "text_units")]
            if all(heads):
                *mentions, units = [head.n_rows for head in heads if head]
                n_mentions, n_units = n_mentions + sum(mentions), n_units + units
        return n_mentions / n_units if n_units else 0.0

    def _count_new(self, bucket: str, seen: Mapping[str, str | None]) -> int:
        """Return the number of text units of a bucket that are new to a graph made from these mention versions."""
        extraction = self._stale.get("extracted_graph", {}).get(bucket)
        heads = {f"{table}/{bucket}": self._root.tables.head(table, bucket) for table in _MENTIONS}
        is_seen = all(head and seen.get(name) == head.data_version for name, head in heads.items())
        if not is_seen or (extraction and extraction.changes):
            return self._count(bucket)
        return self._count_uncovered(bucket) if extraction else 0

    def _count_uncovered(self, bucket: str) -> int:
        """Count text units without mentions, and removed ones with mentions; all if both counts are 0."""
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
        units = split_documents(self._documents(bucket), self._root.settings.text_units)
        self._n_rows[bucket] = units.num_rows
        return units

    def _documents(self, bucket: str) -> pa.Table:
        if bucket not in self._stale.get("documents", {}) and self._root.tables.head("documents", bucket):
            return self._root.tables.read("documents", bucket)
        return build_documents(list(self._root.read_input({bucket})))

    def _is_split(self, bucket: str) -> bool:
        return not any(bucket in self._stale.get(name, {}) for name in ("documents", "text_units"))
