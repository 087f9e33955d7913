"""The route of the graph as it is drawn: a level of communities, the inside of one, what surrounds an entity."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.reading.graph import GraphPart, draw_community, draw_level, draw_surroundings
from graphrag_pipeline.serve.api_route import make_router
from graphrag_pipeline.serve.endpoint import Call
from graphrag_pipeline.serve.errors import InvalidRequestError
from graphrag_pipeline.serve.queries import Answered, FilteredQuery, SearchText, Whole

MAX_NODES = 5_000
MAX_TYPES = 50


class PictureQuery(FilteredQuery):
    """A request for a part of the graph; one of `level`, `community` and `entity` names it, else level 0."""

    level: Whole | None = Field(None, ge=0, le=1000, description="Communities of this level; 0 is the coarsest.")
    community: str = Field("", max_length=1000, description="What is inside this community: number, id or title.")
    entity: str = Field("", max_length=1000, description="What surrounds this entity: number, id or name.")
    depth: Whole = Field(1, ge=1, le=3, description="Relationships between the entity and the farthest ones.")
    type: list[SearchText] = Field(
        default_factory=list, max_length=MAX_TYPES, description="Only entities of these types; repeatable."
    )
    limit: Whole = Field(2000, ge=1, le=MAX_NODES, description="Most nodes, the largest or nearest first.")


class PictureAnswer(Answered):
    """A part of the graph with the places of its nodes."""

    graph: GraphPart


routes = make_router("graph")


@routes.get("/graph", response_model=PictureAnswer)
async def picture(query: Annotated[PictureQuery, Query()], call: Call) -> Response:
    """Draw a part of the graph, with the places of its nodes."""
    if (query.level is not None) + bool(query.community) + bool(query.entity) > 1:
        raise InvalidRequestError("`level`, `community` and `entity` exclude each other.", "Give one of them.")
    return await call.show(query, "graph", lambda index: _draw(index, query))


def _draw(index: GraphIndex, query: PictureQuery) -> GraphPart:
    if query.community:
        return draw_community(index, query.community, query.type, query.limit)
    if query.entity:
        return draw_surroundings(index, query.entity, query.depth, query.type, query.limit)
    return draw_level(index, query.level or 0, query.type, query.limit)
