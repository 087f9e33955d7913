"""Routes about the server: health, readiness, metrics, and the roots that a reader may read."""

from __future__ import annotations

from pydantic import BaseModel, Field

from graphrag_pipeline.serve.api_route import ApiCall, ApiRoute, ServerQuery
from graphrag_pipeline.serve.endpoint import permitted_roots
from graphrag_pipeline.serve.errors import ApiError, NotReadyError
from graphrag_pipeline.serve.metrics import CONTENT_TYPE


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


def _health(_: ApiCall) -> Health:
    return Health(status="ok")


def _ready(call: ApiCall) -> Health:
    if not call.app.served.is_ready:
        raise NotReadyError("At least one root has no published index that can be read.")
    return Health(status="ok")


def _roots(call: ApiCall) -> RootList:
    found = []
    for name, filters in permitted_roots(call.app, call.reader).items():
        try:
            with call.app.served.lease(name, filters) as lease:
                found.append(ServedRoot(name=name, snapshot=lease.snapshot, is_ready=True))
        except NotReadyError:
            found.append(ServedRoot(name=name, snapshot=None, is_ready=False))
    return RootList(roots=found)


def _metrics(call: ApiCall) -> bytes:
    permitted = permitted_roots(call.app, call.reader)
    if set(permitted) != set(call.app.served.names) or any(permitted.values()):
        raise ApiError(404, "not_found", "There is no such path.", "/openapi.json lists all.")
    return call.app.metrics.render()


ROUTES = (
    ApiRoute("GET", "/health", _health, Health, "Tell whether the process answers.", "server", ServerQuery,
             reads_root=False, is_instant=True),
    ApiRoute("GET", "/ready", _ready, Health, "Tell whether every root can be searched.", "server", ServerQuery,
             reads_root=False, is_instant=True),
    ApiRoute("GET", "/roots", _roots, RootList, "List the roots that you may read.", "server", ServerQuery,
             reads_root=False),
    ApiRoute("GET", "/metrics", _metrics, str, "Return the figures of the server for Prometheus.", "server",
             ServerQuery, reads_root=False, media_type=CONTENT_TYPE),
)  # fmt: skip
