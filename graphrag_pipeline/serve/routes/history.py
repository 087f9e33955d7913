"""Routes of an index over time: snapshots and their differences, evaluation figures, costs.

Figures and costs are those of the whole root: a reader with filters does not get them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from graphrag_pipeline.evaluation.figures_store import StoredFigures, list_figures
from graphrag_pipeline.inspection.ledger_report import LedgerReport, report_ledger
from graphrag_pipeline.inspection.snapshot_diff import SnapshotDiff, diff_snapshots
from graphrag_pipeline.serve.api_route import Answered, ApiCall, ApiRoute, RootQuery
from graphrag_pipeline.serve.errors import NotFoundError
from graphrag_pipeline.serve.served_roots import IndexLease
from graphrag_pipeline.storage.history import SnapshotFacts, describe_snapshot, list_snapshots


class SnapshotList(Answered):
    """The snapshots of the root, newest first."""

    snapshots: list[SnapshotFacts]


class SnapshotAnswer(Answered):
    """The facts of one snapshot."""

    facts: SnapshotFacts


class DiffQuery(RootQuery):
    """A request for differences."""

    from_: str = Field(alias="from", min_length=1, max_length=64, description="Id of the earlier snapshot.")
    to: str = Field("", max_length=64, description="Id of the later snapshot; default: the published one.")


class DiffAnswer(Answered):
    """All that changed from one snapshot to another."""

    diff: SnapshotDiff


class FiguresAnswer(Answered):
    """The stored figures of evaluations, those of the newest snapshot first."""

    evaluations: list[StoredFigures]


class CostsQuery(RootQuery):
    """A request for costs."""

    by: Literal["", "day", "model", "stage", "command"] = Field("", description="Also sum by this.")


class CostsAnswer(Answered):
    """The paid calls of the root."""

    costs: LedgerReport


def _snapshots(_: ApiCall, lease: IndexLease) -> Any:
    listed = list_snapshots(lease.root.snapshots)
    if not lease.is_whole:  # an earlier one of a view may hold documents that are no longer permitted
        listed = [facts for facts in listed if facts.id == lease.snapshot]
    return lease.answer(snapshots=[_shown(one, lease) for one in listed])


def _snapshot(call: ApiCall, lease: IndexLease) -> Any:
    with call.app.served.lease(lease.name, call.reader.filters_of(lease.name), call.path["key"]) as wanted:
        facts = describe_snapshot(wanted.root.snapshots, wanted.snapshot)
    return lease.answer(facts=_shown(facts, lease))


def _shown(facts: SnapshotFacts, lease: IndexLease) -> SnapshotFacts:
    """Return the facts without texts about the root, for a reader who reads a view of it."""
    return facts if lease.is_whole else replace(facts, refusal="", notes=())


def _diff(call: ApiCall, lease: IndexLease) -> Any:
    query: DiffQuery = call.query
    filters = call.reader.filters_of(lease.name)
    served = call.app.served
    with served.lease(lease.name, filters, query.from_) as old, served.lease(lease.name, filters, query.to) as new:
        found = diff_snapshots(old.index.snapshot, new.index.snapshot)
    return lease.answer(diff=found if lease.is_whole else replace(found, stages=()))


def _evaluations(_: ApiCall, lease: IndexLease) -> Any:
    _need_whole(lease)
    order = {snapshot: place for place, snapshot in enumerate(reversed(lease.root.snapshots.ids()))}
    found = [one for one in list_figures(lease.root.path) if one.snapshot in order]
    return lease.answer(evaluations=sorted(found, key=lambda one: (order[one.snapshot], one.name)))


def _costs(call: ApiCall, lease: IndexLease) -> Any:
    _need_whole(lease)
    return lease.answer(costs=report_ledger(lease.root, call.query.by))


def _need_whole(lease: IndexLease) -> None:
    if not lease.is_whole:
        raise NotFoundError("There is no such path for you.", "/openapi.json lists all.")


ROUTES = (
    ApiRoute("GET", "/snapshots", _snapshots, SnapshotList, "List the snapshots of a root.", "history"),
    ApiRoute("GET", "/snapshots/diff", _diff, DiffAnswer, "Compare two snapshots.", "history", DiffQuery),
    ApiRoute("GET", "/snapshots/{key}", _snapshot, SnapshotAnswer, "Show the facts of a snapshot.", "history",
             path_params={"key": "Id or its beginning."}),
    ApiRoute("GET", "/evaluations", _evaluations, FiguresAnswer, "List the stored figures of evaluations.", "history"),
    ApiRoute("GET", "/costs", _costs, CostsAnswer, "Report the paid calls of a root.", "history", CostsQuery),
)  # fmt: skip
