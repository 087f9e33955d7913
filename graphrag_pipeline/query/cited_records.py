"""Resolution of citations: the records that a citation names, the records that a report cites, and their text units.

    [Data: Reports (3)] -> report -> the records that its text cites -> text units -> document and offsets

A record's text units are rows; `records.read_text_units` reads them with their documents and offsets. Keep out: which
passage of a text unit supports a statement (`answers/evidence.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_pipeline.citations import KIND_OF_RECORD, parse_citations
from graphrag_pipeline.query.index_reader import SnapshotReader

MAX_OF_COMMUNITY = 200
"""Number of a community's text units that a report without citations resolves to."""
_TABLE_OF_KIND = {
    # Kind in a citation -> (kind of record, contract table, adjacency to its text units); the most specific kind first.
    "Relationships": ("relationship", "relationships", "relationship_text_units"),
    "Claims": ("claim", "covariates", ""),
    "Entities": ("entity", "entities", "entity_text_units"),
    "Sources": ("text_unit", "text_units", ""),
    "Reports": ("report", "community_reports", ""),
}


@dataclass(frozen=True)
class CitedRecord:
    """A record that a statement cites, with the rows of the text units it comes from.

    Attributes:
        kind: entity, relationship, claim, report or text_unit.
        through: of a report: the records that its text cites. The report's text units are theirs.
    """

    kind: str
    id: str
    human_readable_id: int
    text_unit_rows: tuple[int, ...]
    through: tuple[CitedRecord, ...] = ()


class CitedRecords:
    """Lookup of the records that citations name.

    Args:
        index: the index whose human-readable ids the citations use.
    """

    def __init__(self, index: SnapshotReader) -> None:
        self._index = index

    def read_cited(self, citations: str, below_level: int = -1) -> list[CitedRecord]:
        """Return the records that a text's citations name by human-readable id, the most specific kind first.

        Unknown numbers and records without text units are left out. So are reports on communities that are not below
        `below_level`: a report never leads to itself.
        """
        cited: dict[str, list[int]] = {}
        for kind, numbers in parse_citations(citations):
            cited.setdefault(kind, []).extend(int(n) for n in numbers if n.isdecimal() and len(n) < 16)
        return [
            record
            for kind in _TABLE_OF_KIND
            if kind in cited
            for record in self._read_records(kind, list(dict.fromkeys(cited[kind])), below_level)
            if record.text_unit_rows
        ]

    def read_record(self, kind: str, record_id: str) -> CitedRecord:
        """Return a record by its kind and id, with the text units it comes from."""
        _, table, _ = _TABLE_OF_KIND[KIND_OF_RECORD[kind]]
        return self._read_row(KIND_OF_RECORD[kind], int(self._index.snapshot.rows_of(table, [record_id])[0]))

    def read_report(self, row: int) -> CitedRecord:
        """Return a report with the text units of the records that it cites; without any, those of its community."""
        columns = ["id", "human_readable_id", "community", "level", "full_content"]
        [report] = self._index.snapshot.take("community_reports", [row], columns)
        through = tuple(self.read_cited(report["full_content"], report["level"]))
        rows = sorted({unit for record in through for unit in record.text_unit_rows})
        units = tuple(rows or self._units_of_community(report["community"]))
        return CitedRecord("report", report["id"], report["human_readable_id"], units, through)

    def _read_records(self, kind: str, numbers: Sequence[int], below_level: int) -> list[CitedRecord]:
        rows = self._index.rows_of_numbers(_TABLE_OF_KIND[kind][1], "human_readable_id", numbers)
        if kind == "Reports":
            rows = rows[(rows >= 0) & (self._index.column("community_reports", "level")[rows] > below_level)]
        return [self._read_row(kind, row) for row in rows[rows >= 0].tolist()]

    def _read_row(self, kind: str, row: int) -> CitedRecord:
        name, table, relation = _TABLE_OF_KIND[kind]
        if name == "report":
            return self.read_report(row)
        record = self._index.snapshot.take(table, [row], ["id", "human_readable_id"])[0]
        if relation:
            units = self._index.snapshot.adjacency.of(relation, row).tolist()
        elif name == "claim":
            claim = self._index.snapshot.take(table, [row])[0]  # a snapshot of release 0.1 has one text unit a claim
            ids = claim.get("text_unit_ids") or [claim["text_unit_id"]]
            units = self._index.snapshot.rows_of("text_units", ids).tolist()
        else:
            units = [row]
        return CitedRecord(name, record["id"], record["human_readable_id"], tuple(unit for unit in units if unit >= 0))

    def _units_of_community(self, community: int) -> list[int]:
        rows = self._index.rows_of_numbers("communities", "community", [community])
        listed = self._index.snapshot.take("communities", rows[rows >= 0], ["text_unit_ids"])
        ids = listed[0]["text_unit_ids"][:MAX_OF_COMMUNITY] if listed else []
        units = self._index.snapshot.rows_of("text_units", ids)
        found: list[int] = units[units >= 0].tolist()
        return found
