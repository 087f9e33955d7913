"""Routes of an index over time: snapshots and their differences, evaluation figures, costs.

Figures and costs are those of the whole root: a reader with filters does not get them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import Field
from starlette.responses import Response

from graphrag_pipeline.evaluation.figures_store import StoredFigures, list_figures
from graphrag_pipeline.inspection.ledger_report import LedgerReport, report_ledger
from graphrag_pipeline.inspection.snapshot_diff import SnapshotDiff, diff_snapshots
from graphrag_pipeline.serve.api_route import Key, make_router
from graphrag_pipeline.serve.endpoint import Call
from graphrag_pipeline.serve.errors import NotFoundError
from graphrag_pipeline.serve.queries import Answered, RootQuery
from graphrag_pipeline.serve.served_roots import IndexLease
from graphrag_pipeline.storage.snapshot_store import SnapshotFacts, describe_snapshot, list_snapshots

SnapshotKey = Annotated[Key, Path(description="Id or its beginning.")]


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


routes = make_router("history")


@routes.get("/snapshots", response_model=SnapshotList)
async def snapshots(query: Annotated[RootQuery, Query()], call: Call) -> Response:
    """List the snapshots of a root."""

    def read(lease: IndexLease) -> dict[str, Any]:
        listed = list_snapshots(lease.root.snapshots)
        if not lease.is_whole:  # an earlier one of a view may hold documents that are no longer permitted
            listed = [facts for facts in listed if facts.id == lease.snapshot]
        return lease.answer(snapshots=[_shown(one, lease) for one in listed])

    return await call.read(query, read)


@routes.get("/snapshots/diff", response_model=DiffAnswer)
async def diff(query: Annotated[DiffQuery, Query()], call: Call) -> Response:
    """Compare two snapshots."""

    def read(lease: IndexLease) -> dict[str, Any]:
        name, filters, served = lease.name, call.reader.filters_of(lease.name), call.app.served
        with served.lease(name, filters, query.from_) as old, served.lease(name, filters, query.to) as new:
            found = diff_snapshots(old.index.snapshot, new.index.snapshot)
        return lease.answer(diff=found if lease.is_whole else replace(found, stages=()))

    return await call.read(query, read)


@routes.get("/snapshots/{key}", response_model=SnapshotAnswer)
async def snapshot(key: SnapshotKey, query: Annotated[RootQuery, Query()], call: Call) -> Response:
    """Show the facts of a snapshot."""

    def read(lease: IndexLease) -> dict[str, Any]:
        with call.app.served.lease(lease.name, call.reader.filters_of(lease.name), key) as wanted:
            facts = describe_snapshot(wanted.root.snapshots, wanted.snapshot)
        return lease.answer(facts=_shown(facts, lease))

    return await call.read(query, read)


@routes.get("/evaluations", response_model=FiguresAnswer)
async def evaluations(query: Annotated[RootQuery, Query()], call: Call) -> Response:
    """List the stored figures of evaluations."""

    def read(lease: IndexLease) -> dict[str, Any]:
        _need_whole(lease)
        order = {snapshot: place for place, snapshot in enumerate(reversed(lease.root.snapshots.ids()))}
        found = [one for one in list_figures(lease.root.path) if one.snapshot in order]
        return lease.answer(evaluations=sorted(found, key=lambda one: (order[one.snapshot], one.name)))

    return await call.read(query, read)


@routes.get("/costs", response_model=CostsAnswer)
async def costs(query: Annotated[CostsQuery, Query()], call: Call) -> Response:
    """Report the paid calls of a root."""

    def read(lease: IndexLease) -> dict[str, Any]:
        _need_whole(lease)
        return lease.answer(costs=report_ledger(lease.root, query.by))

    return await call.read(query, read)


def _shown(facts: SnapshotFacts, lease: IndexLease) -> SnapshotFacts:
    """Return the facts without texts about the root, for a reader who reads a view of it."""
    return facts if lease.is_whole else replace(facts, refusal="", notes=())


def _need_whole(lease: IndexLease) -> None:
    if not lease.is_whole:
        raise NotFoundError("There is no such path for you.", "/openapi.json lists all.")
