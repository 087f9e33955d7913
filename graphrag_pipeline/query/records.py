"""Records of results, read from rows of a snapshot: the only module that knows the contract tables' columns.

Every function takes rows in the order wanted and returns frozen records in that order. Columns are zipped in the order
of the fields of a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import starmap

import numpy as np
import pyarrow.compute as pc

from graphrag_pipeline.query.index_reader import IndexReader, SnapshotReader
from graphrag_pipeline.query.results import (
    ClaimRecord,
    EntityRecord,
    RelationshipRecord,
    ReportRecord,
    TextUnitRecord,
)
from graphrag_pipeline.text.tokens import count_tokens_each

_LATER_COLUMNS = ("header_start", "header_end", "heading_path", "heading_levels", "first_page", "last_page")
"""Not in a snapshot of an earlier version."""


def read_entities(
    index: IndexReader, rows: np.ndarray, scores: np.ndarray, matches: Sequence[str]
) -> tuple[EntityRecord, ...]:
    columns = ["id", "human_readable_id", "title", "type", "description", "degree", "n_tokens"]
    *values, n_tokens = index.snapshot.take_columns("entities", rows, columns)
    return tuple(starmap(EntityRecord, zip(*values, _floats(scores), matches, n_tokens, strict=True)))


def read_relationships(
    index: IndexReader, rows: np.ndarray, scores: np.ndarray, is_inside: np.ndarray
) -> tuple[RelationshipRecord, ...]:
    columns = ["id", "human_readable_id", "source", "target", "description", "weight", "combined_degree", "n_tokens"]
    *values, n_tokens = index.snapshot.take_columns("relationships", rows, columns)
    return tuple(starmap(RelationshipRecord, zip(*values, _floats(scores), is_inside.tolist(), n_tokens, strict=True)))


def read_reports(index: IndexReader, rows: np.ndarray, scores: np.ndarray) -> tuple[ReportRecord, ...]:
    columns = [
        "id", "human_readable_id", "community", "level", "title", "summary", "full_content", "size", "rank", "n_tokens",
    ]  # fmt: skip
    *values, n_tokens = index.snapshot.take_columns("community_reports", rows, columns)
    return tuple(starmap(ReportRecord, zip(*values, _floats(scores), n_tokens, strict=True)))


def read_summaries(index: IndexReader, rows: np.ndarray, scores: np.ndarray) -> tuple[ReportRecord, ...]:
    """Return reports with their summary as `content`, and with the tokens of title and summary."""
    reports = read_reports(index, rows, scores)
    counts = count_tokens_each([f"{report.title}\n{report.summary}" for report in reports])
    return tuple(replace(report, content=report.summary, n_tokens=n) for report, n in zip(reports, counts, strict=True))


def read_claims(index: IndexReader, rows: np.ndarray, scores: np.ndarray) -> tuple[ClaimRecord, ...]:
    columns = [
        "id", "human_readable_id", "subject_id", "object_id", "type", "status", "start_date", "end_date", "description",
        "source_text", "text_unit_id", "n_tokens",
    ]  # fmt: skip
    *values, n_tokens = index.snapshot.take_columns("covariates", rows, columns)
    return tuple(starmap(ClaimRecord, zip(*values, _floats(scores), n_tokens, strict=True)))


def read_text_units(
    index: SnapshotReader, rows: np.ndarray, scores: np.ndarray, entities: Sequence[tuple[str, ...]] | None = None
) -> tuple[TextUnitRecord, ...]:
    columns = ["id", "human_readable_id", "document_id", "text", "start", "end", "n_tokens"]
    known = index.snapshot.table("text_units").schema.names
    columns += [name for name in _LATER_COLUMNS if name in known]
    found = index.snapshot.take("text_units", rows, columns)
    for record in found:
        titles, levels = record.pop("heading_path", None) or (), record.pop("heading_levels", None) or ()
        record["headings"] = tuple(zip(levels, titles, strict=True))
    documents = index.documents(record["document_id"] for record in found)
    for record in found:
        names = documents.get(record["document_id"], ("", "", None))
        record["document_title"], record["document_path"], record["document_date"] = names
    return tuple(
        TextUnitRecord(**record, score=score, entities=informed)
        for record, score, informed in zip(found, _floats(scores), entities or [()] * len(found), strict=True)
    )


def _floats(scores: np.ndarray) -> list[float]:
    found: list[float] = np.asarray(scores, dtype=np.float64).tolist()
    return found


def root_mask(index: IndexReader) -> np.ndarray:
    """Return which communities are roots: those without a parent that may be read. bool (n,)."""
    is_root = index.column("communities", "level") == 0
    if index.document_mask is None:
        return is_root
    row_mask = index.row_mask("communities")
    parents = np.searchsorted(index.column("communities", "community"), index.column("communities", "parent"))
    return row_mask & (is_root | ~np.r_[row_mask, False][parents])


def frontier_mask(index: IndexReader, level: int) -> np.ndarray:
    """Return which communities are the frontier at a level: those at it, and those above without children. bool (n,).

    If filters hide a report, the readable roots below the level replace it.
    """
    levels = index.column("communities", "level")
    n_children = np.asarray(pc.list_value_length(index.snapshot.table("communities")["children"]))
    is_frontier = (levels == level) | ((levels < level) & (n_children == 0))
    if index.document_mask is None:
        return is_frontier
    return (is_frontier & index.row_mask("communities")) | (root_mask(index) & (levels > level))
