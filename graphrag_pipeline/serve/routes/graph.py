"""Routes of the graph: entities, relationships, communities, reports and claims, and pictures of its parts."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path, Query
from pydantic import Field
from starlette.responses import Response

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.reading.graph import (
    GraphPart,
    draw_community,
    draw_level,
    draw_path,
    draw_surroundings,
    draw_top,
)
from graphrag_pipeline.reading.lists import (
    list_communities,
    list_entities,
    list_relationships,
    list_reports,
    read_neighbourhood,
    read_relationship,
)
from graphrag_pipeline.reading.pages import (
    CommunityPage,
    CommunityRow,
    EntityPage,
    EntityRow,
    Neighbourhood,
    RelationshipPage,
    RelationshipRow,
    ReportPage,
    ReportRow,
)
from graphrag_pipeline.reading.records import read_community, read_entity, read_report
from graphrag_pipeline.serve.api_route import (
    MAX_LISTED,
    FilteredQuery,
    Key,
    PagedQuery,
    SearchText,
    Small,
    Whole,
    answer_model,
    make_router,
)
from graphrag_pipeline.serve.endpoint import Call
from graphrag_pipeline.serve.errors import InvalidRequestError

NamedKey = Annotated[Key, Path(description="Number, id or name.")]
NumberKey = Annotated[Key, Path(description="Number or id.")]
TitledKey = Annotated[Key, Path(description="Number, id or title.")]
MAX_DEPTH = 4


class RecordQuery(FilteredQuery):
    """A request for one record."""

    limit: Whole = Field(10, ge=1, le=MAX_LISTED, description="Most records in each list.")


class EntitiesQuery(PagedQuery):
    """A request for entities."""

    search: SearchText = Field("", description="A part of a title or of another written form, in any case.")
    name: SearchText = Field("", description="The same as `search`.")
    type: SearchText = Field("", description="Type of the entity.")
    community: Small | None = Field(None, description="Number of a community that they belong to.")
    sort: Literal["degree", "title", "text_units", "number"] = "degree"


class NeighboursQuery(FilteredQuery):
    """A request for the entities around one."""

    depth: Whole = Field(1, ge=1, le=MAX_DEPTH, description="Most relationships between it and another one.")
    limit: Whole = Field(50, ge=1, le=MAX_LISTED, description="Most entities.")


class RelationshipsQuery(PagedQuery):
    """A request for relationships."""

    entity: SearchText = Field("", description="Number, id or name of an entity at one end.")
    search: SearchText = Field("", description="A part of a title or of the description, in any case.")
    sort: Literal["weight", "degree", "source", "target", "number"] = "weight"


class CommunitiesQuery(PagedQuery):
    """A request for communities."""

    level: Small | None = Field(None, description="0 is the coarsest.")
    parent: Small | None = Field(None, description="Number of the community one level above.")
    sort: Literal["size", "number"] = "size"


class ReportsQuery(PagedQuery):
    """A request for community reports."""

    search: SearchText = Field("", description="A part of the title or the text, in any case.")
    level: Small | None = Field(None, description="Level of the communities; 0 is the coarsest.")
    sort: Literal["rank", "size", "title", "number"] = "rank"


routes = make_router("graph")


@routes.get("/entities", response_model=answer_model("EntityList", entities=tuple[EntityRow, ...], total=int))
async def entities(query: Annotated[EntitiesQuery, Query()], call: Call) -> Response:
    """List entities."""
    search = query.search or query.name
    return await call.show_list(
        query,
        "entities",
        lambda index: list_entities(index, search, query.type, query.community, query.sort, query.limit, query.offset),
    )


@routes.get("/entities/{key}", response_model=answer_model("EntityAnswer", entity=EntityPage))
async def entity(key: NamedKey, query: Annotated[RecordQuery, Query()], call: Call) -> Response:
    """Show an entity in full."""
    return await call.show(query, "entity", lambda index: read_entity(index, key, query.limit))


@routes.get("/entities/{key}/neighbours", response_model=answer_model("NeighboursAnswer", neighbourhood=Neighbourhood))
async def neighbours(key: NamedKey, query: Annotated[NeighboursQuery, Query()], call: Call) -> Response:
    """Show the entities around one."""
    return await call.show(
        query, "neighbourhood", lambda index: read_neighbourhood(index, key, query.depth, query.limit)
    )


@routes.get(
    "/relationships",
    response_model=answer_model("RelationshipList", relationships=tuple[RelationshipRow, ...], total=int),
)
async def relationships(query: Annotated[RelationshipsQuery, Query()], call: Call) -> Response:
    """List relationships."""
    return await call.show_list(
        query,
        "relationships",
        lambda index: list_relationships(index, query.search, query.entity, query.sort, query.limit, query.offset),
    )


@routes.get("/relationships/{key}", response_model=answer_model("RelationshipAnswer", relationship=RelationshipPage))
async def relationship(key: NumberKey, query: Annotated[RecordQuery, Query()], call: Call) -> Response:
    """Show a relationship in full."""
    return await call.show(query, "relationship", lambda index: read_relationship(index, key, query.limit))


@routes.get(
    "/communities", response_model=answer_model("CommunityList", communities=tuple[CommunityRow, ...], total=int)
)
async def communities(query: Annotated[CommunitiesQuery, Query()], call: Call) -> Response:
    """List communities."""
    return await call.show_list(
        query,
        "communities",
        lambda index: list_communities(index, query.level, query.parent, query.sort, query.limit, query.offset),
    )


@routes.get("/communities/{key}", response_model=answer_model("CommunityAnswer", community=CommunityPage))
async def community(key: TitledKey, query: Annotated[RecordQuery, Query()], call: Call) -> Response:
    """Show a community in full."""
    return await call.show(query, "community", lambda index: read_community(index, key, query.limit))


@routes.get("/reports", response_model=answer_model("ReportList", reports=tuple[ReportRow, ...], total=int))
async def reports(query: Annotated[ReportsQuery, Query()], call: Call) -> Response:
    """List community reports."""
    return await call.show_list(
        query,
        "reports",
        lambda index: list_reports(index, query.search, query.level, query.sort, query.limit, query.offset),
    )


@routes.get("/reports/{key}", response_model=answer_model("ReportAnswer", report=ReportPage))
async def report(key: TitledKey, query: Annotated[RecordQuery, Query()], call: Call) -> Response:
    """Show a community report in full."""
    return await call.show(query, "report", lambda index: read_report(index, key, query.limit))


MAX_NODES = 5_000
MAX_TOP = 500
MAX_TYPES = 50


class PictureQuery(FilteredQuery):
    """A request for a part of the graph; one of `top`, `level`, `community` and `entity` names it, else level 0."""

    top: Whole | None = Field(None, ge=1, le=MAX_TOP, description="So many entities with most relationships.")
    level: Whole | None = Field(None, ge=0, le=1000, description="Communities of this level; 0 is the coarsest.")
    community: str = Field("", max_length=1000, description="What is inside this community: number, id or title.")
    entity: str = Field("", max_length=1000, description="What surrounds this entity: number, id or name.")
    to: str = Field("", max_length=1000, description="Instead a shortest path from `entity` to this one.")
    depth: Whole = Field(1, ge=1, le=3, description="Relationships between the entity and the farthest ones.")
    type: list[SearchText] = Field(
        default_factory=list, max_length=MAX_TYPES, description="Only entities of these types; repeatable."
    )
    limit: Whole = Field(2000, ge=1, le=MAX_NODES, description="Most nodes, the largest or nearest first.")


@routes.get("/graph", response_model=answer_model("PictureAnswer", graph=GraphPart))
async def picture(query: Annotated[PictureQuery, Query()], call: Call) -> Response:
    """Draw a part of the graph, with the places of its nodes."""
    if (query.top is not None) + (query.level is not None) + bool(query.community) + bool(query.entity) > 1:
        raise InvalidRequestError("`top`, `level`, `community` and `entity` exclude each other.", "Give one of them.")
    if query.to and not query.entity:
        raise InvalidRequestError("`to` is the end of a path, which has no start.", "Give `entity`, too.")
    return await call.show(query, "graph", lambda index: _draw(index, query))


def _draw(index: GraphIndex, query: PictureQuery) -> GraphPart:
    if query.community:
        return draw_community(index, query.community, query.type, query.limit)
    if query.to:
        return draw_path(index, query.entity, query.to)
    if query.entity:
        return draw_surroundings(index, query.entity, query.depth, query.type, query.limit)
    if query.top:
        return draw_top(index, query.top, query.type)
    return draw_level(index, query.level or 0, query.type, query.limit)
