"""The declaration of a route: path, models of its request and answer, and the function behind it.

The functions run in threads and know nothing of HTTP. `endpoint.py` serves a route, `openapi.py` describes it. Keep
out: the routes themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

from graphrag_pipeline.models.event_loop import CallScope
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.serve.errors import ErrorAnswer
from graphrag_pipeline.serve.limits import MAX_TEXT_CHARS, Filters, ServerLimits
from graphrag_pipeline.serve.metrics import Metrics
from graphrag_pipeline.serve.readers import Reader
from graphrag_pipeline.serve.served_roots import IndexLease, ServedRoots

MAX_LISTED = 1_000
"""Most records of one answer."""
MAX_OFFSET = 2**53
SearchText = Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS)]
Small = Annotated[int, Field(ge=0, le=MAX_OFFSET)]


class ServerQuery(BaseModel):
    """A request about the server, without parameters."""

    model_config = ConfigDict(extra="forbid")


class RootQuery(ServerQuery):
    """A request about one root."""

    root: str = Field("", max_length=200, description="Name of the root; needed only if several are served.")
    snapshot: str = Field(
        "", max_length=64, description="Id of an earlier snapshot, or its beginning; default: the published one."
    )


class FilteredQuery(RootQuery):
    """A request for records."""

    filter: Filters = Field(
        default_factory=list,
        description="Read only records of documents that pass all filters, such as `year>=2024`; repeatable.",
    )


class PagedQuery(FilteredQuery):
    """A request for a part of a list."""

    limit: int = Field(50, ge=1, le=MAX_LISTED, description="Most records.")
    offset: int = Field(0, ge=0, le=MAX_OFFSET, description="Records to skip.")


class Answered(BaseModel):
    """An answer from one snapshot."""

    root: str = Field(description="Name of the root.")
    snapshot: str = Field(description="Id of the snapshot that the answer comes from.")


Emit = Callable[[str, Any], None]
"""Takes an event of a stream: its name, "" for one without a name, and its data."""


@dataclass(frozen=True)
class ServedApp:
    """The parts of a server that functions behind routes use."""

    served: ServedRoots
    limits: ServerLimits
    metrics: Metrics


@dataclass(frozen=True)
class ApiCall:
    """One request, read and validated.

    Attributes:
        query: of the route's query model.
        body: of the route's body model; None without one.
        path: parameters of the path.
        scope: cancels the calls to models if the client goes away.
        emit: takes the events of a stream; None if the answer is not streamed.
        base_url: of the server, as the client named it.
    """

    app: ServedApp
    reader: Reader
    query: Any
    body: Any = None
    path: Mapping[str, str] = field(default_factory=dict)
    scope: CallScope = field(default_factory=CallScope)
    emit: Emit | None = None
    base_url: str = ""


def filtered(call: ApiCall, lease: IndexLease) -> GraphIndex:
    """Return the leased index as the filters of the request leave it.

    Raises:
        PipelineError: a filter does not hold.
    """
    return lease.index.where(call.query.filter)


Handler = Callable[[ApiCall, IndexLease], Any]
ServerHandler = Callable[[ApiCall], Any]


@dataclass(frozen=True)
class ApiRoute:
    """A route that answers in JSON.

    Attributes:
        path: with parameters in braces.
        handle: returns a value of `answer`; gets the lease of the root if `reads_root`.
        answer: type of the answer.
        summary: one sentence for the OpenAPI document.
        tag: group in that document.
        query: model of the query string.
        body: model of the body of a POST; None for GET.
        path_params: description of each parameter of the path.
        reads_root: whether the request leases the index of a root.
        is_instant: whether it answers in the event loop, since it only looks at values; it needs no free thread.
        is_search: whether it may call models, so that a client who goes away cancels them.
        streams: "never"; "wanted", if the header Accept asks for it; "body", if `stream` of the body does; "always".
        media_type: of the answer, where it is not JSON.
        error: model of an error; the one form, or OpenAI's.
    """

    method: str
    path: str
    handle: Handler | ServerHandler
    answer: Any
    summary: str
    tag: str
    query: type[ServerQuery] = RootQuery
    body: type[BaseModel] | None = None
    path_params: Mapping[str, str] = field(default_factory=dict)
    reads_root: bool = True
    is_instant: bool = False
    is_search: bool = False
    streams: str = "never"
    media_type: str = "application/json"
    error: type[BaseModel] = ErrorAnswer

    @cached_property
    def adapter(self) -> TypeAdapter:
        """The reader and writer of the answer."""
        return TypeAdapter(self.answer)

    @cached_property
    def number_params(self) -> frozenset[str]:
        """Names of query parameters that are whole numbers."""
        return frozenset(
            one.alias or name
            for name, one in self.query.model_fields.items()
            if int in (one.annotation, *get_args(one.annotation))
        )

    @cached_property
    def list_params(self) -> frozenset[str]:
        """Names of query parameters that may occur several times."""
        return frozenset(
            name for name, one in self.query.model_fields.items() if getattr(one.annotation, "__origin__", None) is list
        )
