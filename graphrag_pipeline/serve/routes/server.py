"""Routes about the server and its roots: their health, metrics, snapshots, runs and measured figures."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.figures_store import StoredFigures, list_figures
from graphrag_pipeline.evaluation.index_quality.figures import FIGURES
from graphrag_pipeline.inspection.index_reports import LedgerReport, report_ledger
from graphrag_pipeline.inspection.review import Review, review_candidate
from graphrag_pipeline.inspection.snapshot_diff import SnapshotDiff, diff_snapshots
from graphrag_pipeline.pipeline.live_status import LiveStatus, read_live_status
from graphrag_pipeline.pipeline.open_work import find_unpublished_candidate
from graphrag_pipeline.serve.api_route import Key, NamedRootQuery, RootQuery, ServerQuery, answer_model, make_router
from graphrag_pipeline.serve.endpoint import CONTENT_TYPE, ApiCall, Call, permitted_roots
from graphrag_pipeline.serve.errors import ApiError, NotFoundError, NotReadyError, answer_json, write_json
from graphrag_pipeline.serve.served_roots import IndexLease
from graphrag_pipeline.storage.snapshot_store import SnapshotFacts, describe_snapshot, find_snapshot, list_snapshots

SnapshotKey = Annotated[Key, Path(description="Id or its beginning.")]


class DiffQuery(RootQuery):
    """A request for differences."""

    from_: str = Field(alias="from", min_length=1, max_length=64, description="Id of the earlier snapshot.")
    to: str = Field("", max_length=64, description="Id of the later snapshot; default: the published one.")


class CostsQuery(RootQuery):
    """A request for costs."""

    by: Literal["", "day", "model", "stage", "command"] = Field("", description="Also sum by this.")


history_routes = make_router("history")


@history_routes.get("/snapshots", response_model=answer_model("SnapshotList", snapshots=list[SnapshotFacts]))
async def snapshots(query: Annotated[RootQuery, Query()], call: Call) -> Response:
    """List the snapshots of a root."""

    def read(lease: IndexLease) -> dict[str, Any]:
        listed = list_snapshots(lease.root.snapshots, find_unpublished_candidate(lease.root))
        if not lease.is_whole:  # an earlier one of a view may hold documents that are no longer permitted
            listed = [facts for facts in listed if facts.id == lease.snapshot]
        return lease.answer(snapshots=[_shown(one, lease) for one in listed])

    return await call.read(query, read)


@history_routes.get("/snapshots/diff", response_model=answer_model("DiffAnswer", diff=SnapshotDiff))
async def diff(query: Annotated[DiffQuery, Query()], call: Call) -> Response:
    """Compare two snapshots."""

    def read(lease: IndexLease) -> dict[str, Any]:
        name, filters, served = lease.name, call.reader.filters_of(lease.name), call.app.served
        with served.lease(name, filters, query.from_) as old, served.lease(name, filters, query.to) as new:
            found = diff_snapshots(old.index.snapshot, new.index.snapshot)
        return lease.answer(diff=found if lease.is_whole else replace(found, stages=()))

    return await call.read(query, read)


@history_routes.get("/snapshots/{key}", response_model=answer_model("SnapshotAnswer", facts=SnapshotFacts))
async def snapshot(key: SnapshotKey, query: Annotated[RootQuery, Query()], call: Call) -> Response:
    """Show the facts of a snapshot."""

    def read(lease: IndexLease) -> dict[str, Any]:
        with call.app.served.lease(lease.name, call.reader.filters_of(lease.name), key) as wanted:
            facts = describe_snapshot(wanted.root.snapshots, wanted.snapshot)
        return lease.answer(facts=_shown(facts, lease))

    return await call.read(query, read)


@history_routes.get("/snapshots/{key}/review", response_model=answer_model("ReviewAnswer", review=Review))
async def review(key: SnapshotKey, query: Annotated[RootQuery, Query()], call: Call) -> Response:
    """Compare a candidate with the published snapshot: changes, checks, cost, gold questions and quality."""

    def read(lease: IndexLease) -> dict[str, Any]:
        _need_whole(lease)
        try:
            candidate = find_snapshot(lease.root.snapshots, key)
        except PipelineError:
            raise NotFoundError(f"There is no snapshot `{key[:80]}` here.", "GET /snapshots lists all.") from None
        return lease.answer(review=review_candidate(lease.root, candidate))

    return await call.read(query, read)


class FigureGuide(BaseModel):
    """How to read a figure of index quality."""

    name: str
    meaning: str = Field(description="A noun phrase.")
    advice: str = Field(description="What to do if the figure is beyond its threshold.")
    listed: str = Field(description='What the examples of the figure are; "" if it has none.')
    is_minimum: bool = Field(description="Whether values below the threshold warn; otherwise those above it.")
    threshold: float | None = Field(description="From the settings of the root; null if the figure never warns.")


@history_routes.get(
    "/evaluations",
    response_model=answer_model("FiguresAnswer", evaluations=list[StoredFigures], guides=list[FigureGuide]),
)
async def evaluations(query: Annotated[RootQuery, Query()], call: Call) -> Response:
    """List the stored figures of evaluations."""

    def read(lease: IndexLease) -> dict[str, Any]:
        _need_whole(lease)
        order = {snapshot: place for place, snapshot in enumerate(reversed(lease.root.snapshots.ids()))}
        found = [one for one in list_figures(lease.root.path) if one.snapshot in order]
        ordered = sorted(found, key=lambda one: (order[one.snapshot], one.name))
        quality = lease.root.settings.quality
        guides = [
            FigureGuide(**asdict(kind), is_minimum=kind.is_minimum, threshold=quality.threshold(kind.option))
            for kind in FIGURES.values()
        ]
        return lease.answer(evaluations=ordered, guides=guides)

    return await call.read(query, read)


@history_routes.get("/costs", response_model=answer_model("CostsAnswer", costs=LedgerReport))
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


class Health(BaseModel):
    """The process answers."""

    status: str = Field(description="`ok`")


class ServedRoot(BaseModel):
    """A root that the reader may read."""

    name: str
    snapshot: str | None = Field(description="Id of its published snapshot; null if the root is not ready.")
    is_ready: bool


class RootList(BaseModel):
    """The roots that the reader may read."""

    roots: list[ServedRoot]


routes = make_router("server")


@routes.get("/health", response_model=Health)
async def health(query: Annotated[ServerQuery, Query()]) -> Response:
    """Tell whether the process answers."""
    return answer_json(write_json(Health(status="ok")))


@routes.get("/ready", response_model=Health)
async def ready(query: Annotated[ServerQuery, Query()], call: Call) -> Response:
    """Tell whether every root can be searched."""
    if not call.app.served.is_ready:
        raise NotReadyError("At least one root has no published index that can be read.")
    return answer_json(write_json(Health(status="ok")))


@routes.get("/roots", response_model=RootList)
async def roots(query: Annotated[ServerQuery, Query()], call: Call) -> Response:
    """List the roots that you may read."""
    return answer_json(await asyncio.to_thread(lambda: write_json(_list_roots(call))))


def _list_roots(call: ApiCall) -> RootList:
    found = []
    for name, filters in permitted_roots(call.app, call.reader).items():
        try:
            with call.app.served.lease(name, filters) as lease:
                found.append(ServedRoot(name=name, snapshot=lease.snapshot, is_ready=True))
        except NotReadyError:
            found.append(ServedRoot(name=name, snapshot=None, is_ready=False))
    return RootList(roots=found)


@routes.get("/live", response_model=LiveStatus)
async def live(query: Annotated[NamedRootQuery, Query()], call: Call) -> Response:
    """Tell what keeps a root up to date, if anything does."""
    permitted = permitted_roots(call.app, call.reader)
    name = query.root or next(iter(permitted), "")
    status = LiveStatus()
    if permitted.get(name) == ():  # without filters
        status = await asyncio.to_thread(read_live_status, call.app.served.root(name).path)
    return answer_json(write_json(status))


@routes.get(
    "/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
)
async def metrics(query: Annotated[ServerQuery, Query()], call: Call) -> Response:
    """Return the figures of the server for Prometheus."""
    permitted = permitted_roots(call.app, call.reader)
    if set(permitted) != set(call.app.served.names) or any(permitted.values()):
        raise ApiError(404, "not_found", "There is no such path.", "/openapi.json lists all.")
    return answer_json(await asyncio.to_thread(call.app.metrics.render), CONTENT_TYPE)
