"""Evidence of communities as hashes, and the earlier reports that can be kept or deferred because of it.

The evidence of a community is a hash of each record inside (entities, relationships, claims) and of each of their
distinct descriptions. A report stays valid as long as all evidence it was written from is still in the community and
only a small share of the current evidence is new to it. So a report is rewritten after a record is deleted, edited,
merged or moved away, and after its descriptions were written by another prompt or model. For small additions, rewriting
is deferred.

The new share is always counted from the evidence that the report was written from, so small additions add up. A report
written from the reports of sub-communities covers only the evidence that they cover. Keep out: writing reports, disk.
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
from graphrag_pipeline.indexing.reports.community_rows import CommunityRows
from graphrag_pipeline.indexing.reports.records import GraphRecords


@dataclass(frozen=True)
class EarlierReports:
    """Reports of an earlier run.

    Attributes:
        rows: rows of `tables.COMMUNITY_REPORTS` with the same code version; None without any.
        basis: identifies the writer of the descriptions, such as the code version of their stage.
        may_defer: whether rewriting a report may be deferred; otherwise only an equal context keeps a report.
    """

    rows: pa.Table | None = None
    basis: str = ""
    may_defer: bool = True


class CommunityEvidence:
    """The evidence behind every record of a graph.

    Args:
        records: the same graph; `CommunityRows` holds positions in it.
        entities, relationships: stage tables; need `id`, `description_key` and `descriptions`.
        descriptions: `tables.DESCRIPTIONS`; a fallback of the embedded engine differs as evidence from a model's text.
        basis: see `EarlierReports`.
    """

    def __init__(
        self, records: GraphRecords, entities: pa.Table, relationships: pa.Table, descriptions: pa.Table, basis: str
    ) -> None:
        filled_in = descriptions.filter(descriptions["is_fallback"])["description_key"]
        self._entities = _Hashes.of("entity", entities, records.names.to_pylist(), filled_in, basis)
        ends = [""] * relationships.num_rows  # names count as evidence of the entities
        self._relationships = _Hashes.of("relationship", relationships, ends, filled_in, basis)
        claims = (records.claims.record(i) for i in range(len(records.claims)))
        self._claims = np.array([_number("claim", claim.id, *claim.fields) for claim in claims], dtype=np.int64)

    def of(self, community: CommunityRows) -> np.ndarray:
        """Return the evidence of a community: (n,) int64, distinct, ascending."""
        parts = (
            self._entities.at(community.entities),
            self._relationships.at(community.relationships),
            self._claims[community.claims],
        )
        return np.unique(np.concatenate(parts))


@dataclass(frozen=True)
class _Hashes:
    """Hashes of the rows of a table in the order of their ids; those of row i are `values[starts[i]:starts[i + 1]]`."""

    values: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, kind: str, rows: pa.Table, names: list[str], filled_in: pa.ChunkedArray, basis: str) -> _Hashes:
        """Hash rows; `names` are their display names in the order of the ids."""
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
        """Return the hashes of some rows, one row after the other."""
        # Concatenates ranges without a loop: output i of a row is starts[row] + (i - number of outputs before the row).
        starts = self.starts[rows]
        counts = self.starts[rows + 1] - starts
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        return self.values[np.arange(total) + np.repeat(starts - ends + counts, counts)]


def _number(*parts: str) -> int:
    """Return a hash as a signed 64-bit integer."""
    return int.from_bytes(bytes.fromhex(stable_hash(*parts)[:16]), "big", signed=True)


class ReportReuse:
    """Search for earlier reports that are still valid; fallbacks of the embedded engine never are.

    Args:
        max_new_share: largest share of a community's evidence that may be new to its report; 0 requires an equal
            context.
    """

    def __init__(self, earlier: EarlierReports, max_new_share: float) -> None:
        rows = earlier.rows
        self.max_new_share = max_new_share if earlier.may_defer else 0.0
        self._rows = [] if rows is None else rows.filter(pc.invert(rows["is_fallback"])).to_pylist()
        self._by_inputs = {row["inputs_key"]: row for row in self._rows}
        self._by_context = {row["context_key"]: row for row in self._rows}
        self._by_least: dict[int, list[Mapping[str, Any]]] = {}
        if self.max_new_share:
            for row in self._rows:
                if row["evidence"]:
                    self._by_least.setdefault(row["evidence"][0], []).append(row)

    def find_unchanged(self, inputs_key: str) -> dict[str, Any] | None:
        """Return the row whose context was chosen from equal inputs; None if the context must be built."""
        return self._by_inputs.get(inputs_key)

    def find_equal(self, context_key: str) -> dict[str, Any] | None:
        """Return the row that was written from an equal context, or None."""
        return self._by_context.get(context_key)

    def find_sufficient(self, evidence: np.ndarray) -> dict[str, Any] | None:
        """Return the row that covers most of the evidence, and no other evidence, with its current `new_share`.

        Args:
            evidence: evidence of the community; empty if its report must not be deferred.

        Returns:
            None if no row covers at least 1 - `max_new_share` of the evidence.
        """
        # All evidence of a row must be in `evidence`, so also its smallest value, by which rows are indexed.
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
    """Return the columns `evidence` and `new_share` of a report whose evidence `known` is a subset of `evidence`."""
    return {"evidence": known, "new_share": 1 - len(known) / len(evidence) if len(evidence) else 0.0}
