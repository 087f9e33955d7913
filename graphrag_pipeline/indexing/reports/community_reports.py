"""Community reports: what each community is about, for every community, deepest level first.

A report is a function of its context (`report_contexts.py`) and of nothing else: an earlier report of an equal context
is taken over, whatever became of the rest of the graph. A model's report stays, too, while little of what is known of
its community is new to it (`report_evidence.py`). The embedded engine (`extractive_reports.py`) and a model
(`model_reports.py`) are given the same contexts and return the same `Report`.

Keep out: human-readable numbers and periods (the candidate adds them), prompts, disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from graphrag_pipeline.indexing.reports.contexts import (
    ChildReport,
    CommunityContext,
    build_context,
)
from graphrag_pipeline.indexing.reports.evidence import CommunityEvidence, EarlierReports, ReportReuse, weigh_known
from graphrag_pipeline.indexing.reports.inputs import InputHashes
from graphrag_pipeline.indexing.reports.records import CommunityRows, GraphRecords, iterate_levels
from graphrag_pipeline.settings.settings import ReportsSettings
from graphrag_pipeline.tables import COMMUNITY_REPORTS
from graphrag_pipeline.text.tokens import TokenCounter, count_tokens_each

BATCH_COMMUNITIES = 500


@dataclass(frozen=True)
class Report:
    """What a writer returns; `findings` are (heading, explanation), texts cite stable ids.

    Attributes:
        is_verbatim: descriptions as they are, of a community too small to be worth a model call.
        is_fallback: by the embedded engine, because the model failed.
        request_key: of the model's reply it was read from.
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
        write: who writes: the embedded engine or a model.
        earlier: reports that are not written again where they still speak for a community.
        count_tokens: tokens of each of a list of texts.

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
    del entities, relationships, covariates, descriptions  # large, and what is needed of them is in the records
    parts = [COMMUNITY_REPORTS.empty()]
    reports: dict[str, ChildReport] = {}
    for level in iterate_levels(communities, records):
        finer, reports = reports, {}
        for batch in _batched(level, BATCH_COMMUNITIES):
            rows = reporter.report(batch, finer)
            reports.update((row["community_id"], _as_child(row)) for row in rows)
            parts.append(COMMUNITY_REPORTS.from_rows(rows))
    return COMMUNITY_REPORTS.sort(pa.concat_tables(parts))


def _batched(rows: Sequence, size: int) -> Iterator[Sequence]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


@dataclass(frozen=True)
class _ReportDraft:
    """A whole row, or, with a context to write from, what is known of the row before.

    Attributes:
        evidence: of the community, known to its report or not.
    """

    row: dict[str, Any]
    evidence: np.ndarray
    context: CommunityContext | None = None


class _Reporter:
    """Writes rows of `tables.COMMUNITY_REPORTS`, or takes those that were written before.

    Args:
        evidence: None where reports cost nothing and so have no reason to wait.
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
        self._unknown: dict[str, np.ndarray] = {}  # community id -> evidence that its report does not know

    def report(self, communities: Sequence[CommunityRows], finer: Mapping[str, ChildReport]) -> list[dict]:
        """One row per community, in order; `finer` are the reports of the level below."""
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
        """The earlier row that speaks for a community, else the context to write from."""
        inputs_key, evidence = self._inputs.of(community, finer), self._evidence_of(community)
        if row := self._reuse.find_unchanged(inputs_key):
            may_lag = self._reuse.max_new_share > 0
            now = weigh_known(np.intersect1d(row["evidence"], evidence) if may_lag else evidence, evidence)
            if now["new_share"] <= self._reuse.max_new_share:
                return _ReportDraft(row | now, evidence)
        context = build_context(community, self._records, finer, self._settings.max_input_tokens)
        retold = (self._unknown[child.community_id] for child in context.reports if child.community_id in self._unknown)
        known = np.setdiff1d(evidence, np.concatenate([np.zeros(0, dtype=np.int64), *retold]))
        now = {"inputs_key": inputs_key} | weigh_known(known, evidence)
        if row := self._reuse.find_equal(context.context_key):
            return _ReportDraft(row | now, evidence)
        if row := self._reuse.find_sufficient(evidence):
            return _ReportDraft(row, evidence)
        return _ReportDraft(now, evidence, context)

    def _evidence_of(self, community: CommunityRows) -> np.ndarray:
        """All that is known of a community; nothing where its report costs nothing and so has no reason to wait."""
        is_asked = len(community.entities) >= self._settings.min_report_size
        return self._evidence.of(community) if self._evidence and is_asked else np.zeros(0, dtype=np.int64)


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
