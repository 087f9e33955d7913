"""Which reports may stay although their communities learned something: what each was written from, as hashes.

The evidence of a community is a hash of each record inside (entities, relationships, claims) and of each of their
distinct descriptions. A report speaks for a community as long as all the evidence it was written from still holds there
and little of what is there now is new to it. So a report never outlives what was deleted, edited, merged or moved away,
nor descriptions written by another prompt or model; what is added waits until it is worth a call. What is new is always
counted from what the report was written from, so that small additions add up; what was written from the reports of
sub-communities knows no more of these than they do. Keep out: how reports are written, disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.arrow_columns import one_chunk
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.indexing.reports.records import CommunityRows, GraphRecords


@dataclass(frozen=True)
class EarlierReports:
    """Reports that were written before.

    Attributes:
        rows: of `tables.COMMUNITY_REPORTS`, made by the same code version; None if there are none.
        basis: what wrote the descriptions, such as the code version of their stage.
        may_lag: whether a report may stay where its community learned a little; else only equal contexts share one.
    """

    rows: pa.Table | None = None
    basis: str = ""
    may_lag: bool = True


class CommunityEvidence:
    """The evidence behind every record of a graph.

    Args:
        records: the same graph; positions in a `CommunityRows` are its.
        entities, relationships: stage tables; need `id`, `description_key` and `descriptions`.
        descriptions: `tables.DESCRIPTIONS`; one that the embedded engine filled in is other evidence than a model's.
        basis: see `EarlierReports`.
    """

    def __init__(
        self, records: GraphRecords, entities: pa.Table, relationships: pa.Table, descriptions: pa.Table, basis: str
    ) -> None:
        filled_in = descriptions.filter(descriptions["is_fallback"])["description_key"]
        self._entities = _Hashes.of("entity", entities, records.names.to_pylist(), filled_in, basis)
        ends = [""] * relationships.num_rows  # their names are evidence of the entities
        self._relationships = _Hashes.of("relationship", relationships, ends, filled_in, basis)
        claims = (records.claims.record(i) for i in range(len(records.claims)))
        self._claims = np.array([_number("claim", claim.id, *claim.fields) for claim in claims], dtype=np.int64)

    def of(self, community: CommunityRows) -> np.ndarray:
        """(n,) distinct int64 in rising order: all that is known of a community."""
        parts = (
            self._entities.at(community.entities),
            self._relationships.at(community.relationships),
            self._claims[community.claims],
        )
        return np.unique(np.concatenate(parts))


@dataclass(frozen=True)
class _Hashes:
    """Hashes of the rows of a table, in the order of their ids; row i has `values[starts[i]:starts[i + 1]]`."""

    values: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, kind: str, rows: pa.Table, names: list[str], filled_in: pa.ChunkedArray, basis: str) -> _Hashes:
        """Hashes of rows; `names`, in the order of the ids, are how a report writes them."""
        rows = rows.select(["id", "description_key", "descriptions"]).sort_by("id")
        is_filled = pc.is_in(rows["description_key"], value_set=one_chunk(filled_in)).to_pylist()
        columns = (rows[column].to_pylist() for column in ("id", "descriptions"))
        values: list[int] = []
        starts = [0]
        for row_id, texts, name, flag in zip(*columns, names, is_filled, strict=True):
            values.append(_number(kind, basis, row_id, name, "filled in" if flag else ""))
            values += [_number(kind, row_id, text) for text in texts or ()]
            starts.append(len(values))
        return cls(np.array(values, dtype=np.int64), np.array(starts))

    def at(self, rows: np.ndarray) -> np.ndarray:
        """Hashes of some rows, one row after the other."""
        starts = self.starts[rows]
        counts = self.starts[rows + 1] - starts
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        return self.values[np.arange(total) + np.repeat(starts - ends + counts, counts)]


def _number(*parts: str) -> int:
    """A hash as a signed 64-bit integer."""
    return int.from_bytes(bytes.fromhex(stable_hash(*parts)[:16]), "big", signed=True)


class ReportReuse:
    """Finds the earlier report that still speaks for a community; those filled in by the embedded engine never do.

    Args:
        max_new_share: of the evidence of a community, what a report may not know; 0 asks for an equal context.
    """

    def __init__(self, earlier: EarlierReports, max_new_share: float) -> None:
        rows = earlier.rows
        self.max_new_share = max_new_share if earlier.may_lag else 0.0
        self._rows = [] if rows is None else rows.filter(pc.invert(rows["is_fallback"])).to_pylist()
        self._by_inputs = {row["inputs_key"]: row for row in self._rows}
        self._by_context = {row["context_key"]: row for row in self._rows}
        self._by_least: dict[int, list[Mapping[str, Any]]] = {}
        if self.max_new_share:
            for row in self._rows:
                if row["evidence"]:
                    self._by_least.setdefault(row["evidence"][0], []).append(row)

    def find_unchanged(self, inputs_key: str) -> dict[str, Any] | None:
        """The row whose context was chosen from the same; None if the context has to be built."""
        return self._by_inputs.get(inputs_key)

    def find_equal(self, context_key: str) -> dict[str, Any] | None:
        """The row that was written from an equal context."""
        return self._by_context.get(context_key)

    def find_sufficient(self, evidence: np.ndarray) -> dict[str, Any] | None:
        """The row that knows most of a community, or all, and nothing else; with its `new_share` as it is now.

        Args:
            evidence: of the community; empty if its report may not wait.
        """
        least_known = len(evidence) * (1 - self.max_new_share)
        candidates = [
            row
            for least in evidence.tolist()
            for row in self._by_least.get(least, ())
            if least_known <= len(row["evidence"]) <= len(evidence)
        ]
        kept = [row for row in candidates if np.isin(row["evidence"], evidence, assume_unique=True).all()]
        if not kept:
            return None
        best = min(kept, key=lambda row: (-len(row["evidence"]), row["community_id"]))
        return dict(best) | weigh_known(np.array(best["evidence"], dtype=np.int64), evidence)


def weigh_known(known: np.ndarray, evidence: np.ndarray) -> dict[str, Any]:
    """The columns that say what a report knows of the evidence of its community, all of it known to hold."""
    return {"evidence": known, "new_share": 1 - len(known) / len(evidence) if len(evidence) else 0.0}
