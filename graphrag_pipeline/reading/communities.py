"""Communities and their reports, in full. Keep out: selection of reports for a question."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphrag_pipeline.query.cited_records import CitedRecord, CitedRecords
from graphrag_pipeline.query.index_reader import SnapshotReader
from graphrag_pipeline.reading.entities import link_entities
from graphrag_pipeline.reading.links import link_communities
from graphrag_pipeline.reading.lookup import find_record
from graphrag_pipeline.reading.pages import CitedSource, CommunityPage, ReportedFinding, ReportPage
from graphrag_pipeline.reading.passages import place_units

_TABLES = {"entity": "entities", "relationship": "relationships", "claim": "covariates", "report": "community_reports",
           "text_unit": "text_units"}  # fmt: skip
_NAMES = {"entity": ["title"], "relationship": ["source", "target"], "claim": ["subject_id", "object_id"],
          "report": ["title"], "text_unit": ["text"]}  # fmt: skip
_MAX_NAME = 80


def read_report(reader: SnapshotReader, name: str, n_most: int = 10) -> ReportPage:
    """Return the report that a title, number or id means.

    Args:
        n_most: maximum of cited records, and of text units.

    Raises:
        RecordNameError: see `lookup.find_record`.
    """
    return _report(reader, find_record(reader, "report", name), n_most)


def read_community(reader: SnapshotReader, name: str, n_most: int = 10) -> CommunityPage:
    """Return the community that a number, the title of its report, or an id means.

    Args:
        n_most: maximum of entities, of records that its report cites, and of text units of the report.

    Raises:
        RecordNameError: see `lookup.find_record`.
    """
    row = find_record(reader, "community", name)
    [record] = reader.snapshot.take("communities", [row])
    number = record["community"]
    entities = _rows(reader, "entities", record["entity_ids"])
    degrees = reader.column("entities", "degree")[entities]
    leading = entities[np.lexsort((entities, -degrees))]
    reports = np.flatnonzero((reader.column("community_reports", "community") == number)
                             & reader.row_mask("community_reports"))  # fmt: skip
    report = _report(reader, int(reports[0]), n_most) if len(reports) else None
    return CommunityPage(
        id=record["id"],
        number=number,
        level=record["level"],
        size=len(entities),
        title=report.title if report else record["title"],
        parent=next(iter(link_communities(reader, [record["parent"]])), None),
        children=link_communities(reader, record["children"]),
        entities=link_entities(reader, leading[:n_most].tolist()),
        n_entities=len(entities),
        n_relationships=len(_rows(reader, "relationships", record["relationship_ids"])),
        n_text_units=len(_rows(reader, "text_units", record["text_unit_ids"])),
        report=report,
    )


def _rows(reader: SnapshotReader, table: str, ids: Sequence[str]) -> np.ndarray:
    """Return the rows of ids that may be read."""
    rows = reader.snapshot.rows_of(table, list(ids))
    known = rows[rows >= 0]
    readable: np.ndarray = known[reader.row_mask(table)[known]]
    return readable


def _report(reader: SnapshotReader, row: int, n_most: int) -> ReportPage:
    [record] = reader.snapshot.take("community_reports", [row])
    cited = CitedRecords(reader).read_report(row)
    units = [unit for unit in cited.text_unit_rows if reader.row_mask("text_units")[unit]]
    return ReportPage(
        id=record["id"],
        number=record["human_readable_id"],
        title=record["title"],
        community=link_communities(reader, [record["community"]])[0],
        rank=record["rank"],
        rating_explanation=record["rating_explanation"] or "",
        summary=record["summary"],
        findings=tuple(ReportedFinding(one["summary"], one["explanation"]) for one in record["findings"] or ()),
        content=record["full_content"],
        is_verbatim=record["is_verbatim"],
        is_fallback=record["is_fallback"],
        cited=tuple(_source(reader, one) for one in cited.through[:n_most]),
        n_cited=len(cited.through),
        passages=place_units(reader, units[:n_most]),
        n_passages=len(units),
    )


def _source(reader: SnapshotReader, cited: CitedRecord) -> CitedSource:
    table = _TABLES[cited.kind]
    [record] = reader.snapshot.take(table, reader.snapshot.rows_of(table, [cited.id]), _NAMES[cited.kind])
    name = " -- ".join(" ".join((record[column] or "").split()) for column in _NAMES[cited.kind])
    shown = name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 3]}..."
    return CitedSource(cited.kind, cited.human_readable_id, shown, len(cited.text_unit_rows))
