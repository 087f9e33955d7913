"""Community reports for every community, deepest level first (Edge et al. 2024, arXiv 2404.16130).

A report depends only on its context (`contexts.py`), so an earlier report of an equal context is kept, independent of
changes elsewhere. Rewriting a model's report is deferred while only a small share of its community's evidence is new to
it (`evidence.py`). The embedded engine (`engines/embedded/reports.py`) and a model (`engines/model/reports.py`) get the
same contexts and return the same `Report`.

Hashes of the inputs of report contexts; a context with equal inputs is not built again.

A hash covers the rows of all records inside a community in their order, the sub-communities that contain them, and the
reports of these. It does not cover settings, since reports made with other settings are not reused.

Keep out: human-readable numbers and periods (the candidate adds them), prompts, disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.indexing.reports.community_rows import CommunityRows, iterate_levels
from graphrag_pipeline.indexing.reports.context_text import ChildReport
from graphrag_pipeline.indexing.reports.contexts import CommunityContext, build_context
from graphrag_pipeline.indexing.reports.evidence import CommunityEvidence, EarlierReports, ReportReuse, weigh_known
from graphrag_pipeline.indexing.reports.records import GraphRecords, RecordRows
from graphrag_pipeline.settings.settings import ReportsSettings
from graphrag_pipeline.tables import COMMUNITY_REPORTS
from graphrag_pipeline.text.tokens import TokenCounter, count_tokens_each


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


BATCH_COMMUNITIES = 500


@dataclass(frozen=True)
class Report:
    """A report as a writer returns it; its texts cite stable ids.

    Attributes:
        findings: (heading, explanation) of each finding.
        is_verbatim: whether it only copies descriptions, because the community is too small for a model call.
        is_fallback: whether the embedded engine wrote it because the model failed.
        request_key: key of the request whose reply it was read from.
    """

    title: str
    summary: str
    findings: tuple[tuple[str, str], ...]
    rank: float
    rating_explanation: str
    is_verbatim: bool = False
    is_fallback: bool = False
    request_key: str | None = None


Writer = Callable[[Sequence[CommunityContext]], Sequence[Report]]
"""Writes one report per context, in order."""


def report_communities(
    communities: pa.Table,
    entities: pa.Table,
    relationships: pa.Table,
    covariates: pa.Table,
    descriptions: pa.Table,
    settings: ReportsSettings,
    write: Writer,
    earlier: EarlierReports | None = None,
    count_tokens: TokenCounter = count_tokens_each,
) -> pa.Table:
    """Write a report on every community.

    Args:
        communities, entities, relationships, covariates, descriptions: stage tables of one run, any row order.
        write: the embedded engine or a model.
        earlier: reports that are not written again while they are valid.
        count_tokens: counts the tokens of each text of a list.

    Returns:
        `tables.COMMUNITY_REPORTS`: one row per community.
    """
    earlier = earlier or EarlierReports()
    is_paid = settings.engine == "model"
    records = GraphRecords(entities, relationships, covariates, descriptions, count_tokens)
    reporter = _Reporter(
        records,
        CommunityEvidence(records, entities, relationships, descriptions, earlier.basis) if is_paid else None,
        ReportReuse(earlier, settings.rewrite_share if is_paid else 0.0),
        write,
        settings,
    )
    del entities, relationships, covariates, descriptions  # free memory; the records hold all that is needed
    parts = [COMMUNITY_REPORTS.empty()]
    reports: dict[str, ChildReport] = {}
    for level in iterate_levels(communities, records):
        finer, reports = reports, {}
        for batch in _batched(level, BATCH_COMMUNITIES):
            rows = reporter.report(batch, finer)
            reports.update((row["community_id"], _as_child(row)) for row in rows)
            parts.append(COMMUNITY_REPORTS.from_rows(rows))
    return COMMUNITY_REPORTS.sort(*parts)


def _batched(rows: Sequence, size: int) -> Iterator[Sequence]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


@dataclass(frozen=True)
class _ReportDraft:
    """A row to store.

    Attributes:
        row: a complete row, or with a `context` the columns that do not come from the writer.
        evidence: all evidence of the community.
        context: the context to write from; None if an earlier report is kept.
    """

    row: dict[str, Any]
    evidence: np.ndarray
    context: CommunityContext | None = None


class _Reporter:
    """Make rows of `tables.COMMUNITY_REPORTS`, written now or kept from earlier reports.

    Args:
        evidence: None if reports cost nothing, so that none is deferred.
    """

    def __init__(
        self,
        records: GraphRecords,
        evidence: CommunityEvidence | None,
        reuse: ReportReuse,
        write: Writer,
        settings: ReportsSettings,
    ) -> None:
        self._records = records
        self._inputs = InputHashes(records)
        self._evidence = evidence
        self._reuse = reuse
        self._write = write
        self._settings = settings
        self._unknown: dict[str, np.ndarray] = {}  # community id -> evidence that is new to its report

    def report(self, communities: Sequence[CommunityRows], finer: Mapping[str, ChildReport]) -> list[dict]:
        """Return one row per community, in order; `finer` are the reports of the level below."""
        drafts = [self._draft(community, finer) for community in communities]
        written = iter(self._write([draft.context for draft in drafts if draft.context is not None]))
        rows = []
        for draft, community in zip(drafts, communities, strict=True):
            made = {} if draft.context is None else _as_row(next(written), draft.context.context_key)
            rows.append(made | draft.row | {"community_id": community.id, "level": community.level})
            if rows[-1]["new_share"]:
                self._unknown[community.id] = np.setdiff1d(draft.evidence, rows[-1]["evidence"])
        return rows

    def _draft(self, community: CommunityRows, finer: Mapping[str, ChildReport]) -> _ReportDraft:
        """Find a valid earlier row for a community, else build the context to write from."""
        inputs_key, evidence = self._inputs.of(community, finer), self._evidence_of(community)
        if row := self._reuse.find_unchanged(inputs_key):
            may_defer = self._reuse.max_new_share > 0
            now = weigh_known(np.intersect1d(row["evidence"], evidence) if may_defer else evidence, evidence)
            if now["new_share"] <= self._reuse.max_new_share:
                return _ReportDraft(row | now, evidence)
        context = build_context(community, self._records, finer, self._settings.max_input_tokens)
        # A report on sub-communities' reports does not cover the evidence that is new to these.
        not_covered = [
            self._unknown[child.community_id] for child in context.reports if child.community_id in self._unknown
        ]
        known = np.setdiff1d(evidence, np.concatenate([np.zeros(0, dtype=np.int64), *not_covered]))
        now = {"inputs_key": inputs_key} | weigh_known(known, evidence)
        if row := self._reuse.find_equal(context.context_key):
            return _ReportDraft(row | now, evidence)
        if row := self._reuse.find_sufficient(evidence):
            return _ReportDraft(row, evidence)
        return _ReportDraft(now, evidence, context)

    def _evidence_of(self, community: CommunityRows) -> np.ndarray:
        """Return the evidence of a community; empty if its report costs nothing, so that it is never deferred."""
        is_paid = len(community.entities) >= self._settings.min_report_size
        return self._evidence.of(community) if self._evidence and is_paid else np.zeros(0, dtype=np.int64)


def _as_row(report: Report, context_key: str) -> dict:
    return {
        "title": report.title,
        "summary": report.summary,
        "findings": [{"summary": heading, "explanation": text} for heading, text in report.findings],
        "rank": report.rank,
        "rating_explanation": report.rating_explanation,
        "is_verbatim": report.is_verbatim,
        "is_fallback": report.is_fallback,
        "context_key": context_key,
        "request_key": report.request_key,
    }


def _as_child(row: Mapping) -> ChildReport:
    findings = tuple((finding["summary"], finding["explanation"]) for finding in row["findings"])
    return ChildReport(row["community_id"], row["title"], row["summary"], findings)
