"""The route of the graph as it is drawn: a level of communities, the inside of one, what surrounds an entity."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from graphrag_pipeline.reading.graph import GraphPart, draw_community, draw_level, draw_surroundings
from graphrag_pipeline.serve.api_route import Answered, ApiCall, ApiRoute, RootQuery, SearchText
from graphrag_pipeline.serve.errors import InvalidRequestError
from graphrag_pipeline.serve.limits import Filters
from graphrag_pipeline.serve.served_roots import IndexLease

MAX_NODES = 5_000
MAX_TYPES = 50


class PictureQuery(RootQuery):
    """A request for a part of the graph; one of `level`, `community` and `entity` names it, else level 0."""

    level: int | None = Field(None, ge=0, le=1000, description="Communities of this level; 0 is the coarsest.")
    community: str = Field("", max_length=1000, description="What is inside this community: number, id or title.")
    entity: str = Field("", max_length=1000, description="What surrounds this entity: number, id or name.")
    depth: int = Field(1, ge=1, le=3, description="Relationships between the entity and the farthest ones.")
    type: list[SearchText] = Field(
        default_factory=list, max_length=MAX_TYPES, description="Only entities of these types; repeatable."
    )
    filter: Filters = Field(
        default_factory=list,
        description="Read only records of documents that pass all filters, such as `year>=2024`; repeatable.",
    )
    limit: int = Field(2000, ge=1, le=MAX_NODES, description="Most nodes, the largest or nearest first.")


class PictureAnswer(Answered):
    """A part of the graph with the places of its nodes."""

    graph: GraphPart


def _draw(call: ApiCall, lease: IndexLease) -> dict[str, Any]:
    query: PictureQuery = call.query
    if (query.level is not None) + bool(query.community) + bool(query.entity) > 1:
        raise InvalidRequestError("`level`, `community` and `entity` exclude each other.", "Give one of them.")
    index = lease.index.where(query.filter)
    if query.community:
        part = draw_community(index, query.community, query.type, query.limit)
    elif query.entity:
        part = draw_surroundings(index, query.entity, query.depth, query.type, query.limit)
    else:
        part = draw_level(index, query.level or 0, query.type, query.limit)
    return {"root": lease.name, "snapshot": lease.snapshot, "graph": part}


ROUTES = (
    ApiRoute("GET", "/graph", _draw, PictureAnswer, "Draw a part of the graph, with the places of its nodes.", "graph",
             PictureQuery),
)  # fmt: skip
