"""Routes about the server: health, readiness, metrics, and the roots that a reader may read."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from graphrag_pipeline.serve.answers import answer_json, write_json
from graphrag_pipeline.serve.api_route import make_router
from graphrag_pipeline.serve.endpoint import ApiCall, Call, permitted_roots
from graphrag_pipeline.serve.errors import ApiError, NotReadyError
from graphrag_pipeline.serve.metrics import CONTENT_TYPE
from graphrag_pipeline.serve.queries import ServerQuery


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
_TEXT = {"text/plain": {"schema": {"type": "string"}}}


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


@routes.get(
    "/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
)
async def metrics(query: Annotated[ServerQuery, Query()], call: Call) -> Response:
    """Return the figures of the server for Prometheus."""
    permitted = permitted_roots(call.app, call.reader)
    if set(permitted) != set(call.app.served.names) or any(permitted.values()):
        raise ApiError(404, "not_found", "There is no such path.", "/openapi.json lists all.")
    return answer_json(await asyncio.to_thread(call.app.metrics.render), CONTENT_TYPE)
