"""Routes of the graph: entities, their neighbours, relationships, communities and reports."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from graphrag_pipeline.reading.communities import read_community, read_report
from graphrag_pipeline.reading.entities import read_entity
from graphrag_pipeline.reading.lists import list_communities, list_entities, list_relationships, list_reports
from graphrag_pipeline.reading.neighbourhood import read_neighbourhood, read_relationship
from graphrag_pipeline.reading.pages import CommunityPage, EntityPage, ReportPage
from graphrag_pipeline.reading.rows import (
    CommunityRow,
    EntityRow,
    Neighbourhood,
    RelationshipPage,
    RelationshipRow,
    ReportRow,
)
from graphrag_pipeline.serve.api_route import (
    MAX_LISTED,
    Answered,
    ApiCall,
    ApiRoute,
    FilteredQuery,
    PagedQuery,
    SearchText,
    Small,
    filtered,
)
from graphrag_pipeline.serve.served_roots import IndexLease

NAMED = {"key": "Number, id or name."}
MAX_DEPTH = 4


class RecordQuery(FilteredQuery):
    """A request for one record."""

    limit: int = Field(10, ge=1, le=MAX_LISTED, description="Most records in each list.")


class EntitiesQuery(PagedQuery):
    """A request for entities."""

    search: SearchText = Field("", description="A part of a title or of another written form, in any case.")
    name: SearchText = Field("", description="The same as `search`.")
    type: SearchText = Field("", description="Type of the entity.")
    community: Small | None = Field(None, description="Number of a community that they belong to.")
    sort: Literal["degree", "title", "text_units", "number"] = "degree"


class EntityList(Answered):
    """Entities."""

    entities: tuple[EntityRow, ...]
    total: int


class EntityAnswer(Answered):
    """An entity in full."""

    entity: EntityPage


class NeighboursQuery(FilteredQuery):
    """A request for the entities around one."""

    depth: int = Field(1, ge=1, le=MAX_DEPTH, description="Most relationships between it and another one.")
    limit: int = Field(50, ge=1, le=MAX_LISTED, description="Most entities.")


class NeighboursAnswer(Answered):
    """The entities around one, and the relationships between them."""

    neighbourhood: Neighbourhood


class RelationshipsQuery(PagedQuery):
    """A request for relationships."""

    entity: SearchText = Field("", description="Number, id or name of an entity at one end.")
    search: SearchText = Field("", description="A part of a title or of the description, in any case.")
    sort: Literal["weight", "degree", "source", "target", "number"] = "weight"


class RelationshipList(Answered):
    """Relationships."""

    relationships: tuple[RelationshipRow, ...]
    total: int


class RelationshipAnswer(Answered):
    """A relationship in full."""

    relationship: RelationshipPage


class CommunitiesQuery(PagedQuery):
    """A request for communities."""

    level: Small | None = Field(None, description="0 is the coarsest.")
    parent: Small | None = Field(None, description="Number of the community one level above.")
    sort: Literal["size", "number"] = "size"


class CommunityList(Answered):
    """Communities."""

    communities: tuple[CommunityRow, ...]
    total: int


class CommunityAnswer(Answered):
    """A community in full."""

    community: CommunityPage


class ReportsQuery(PagedQuery):
    """A request for community reports."""

    search: SearchText = Field("", description="A part of the title or the text, in any case.")
    level: Small | None = Field(None, description="Level of the communities; 0 is the coarsest.")
    sort: Literal["rank", "size", "title", "number"] = "rank"


class ReportList(Answered):
    """Community reports."""

    reports: tuple[ReportRow, ...]
    total: int


class ReportAnswer(Answered):
    """A community report in full."""

    report: ReportPage


def _entities(call: ApiCall, lease: IndexLease) -> Any:
    query: EntitiesQuery = call.query
    found, total = list_entities(
        filtered(call, lease), query.search or query.name, query.type, query.community, query.sort, query.limit,
        query.offset,
    )  # fmt: skip
    return lease.answer(entities=found, total=total)


def _entity(call: ApiCall, lease: IndexLease) -> Any:
    return lease.answer(entity=read_entity(filtered(call, lease), call.path["key"], call.query.limit))


def _neighbours(call: ApiCall, lease: IndexLease) -> Any:
    query: NeighboursQuery = call.query
    found = read_neighbourhood(filtered(call, lease), call.path["key"], query.depth, query.limit)
    return lease.answer(neighbourhood=found)


def _relationships(call: ApiCall, lease: IndexLease) -> Any:
    query: RelationshipsQuery = call.query
    found, total = list_relationships(
        filtered(call, lease), query.search, query.entity, query.sort, query.limit, query.offset
    )
    return lease.answer(relationships=found, total=total)


def _relationship(call: ApiCall, lease: IndexLease) -> Any:
    return lease.answer(relationship=read_relationship(filtered(call, lease), call.path["key"], call.query.limit))


def _communities(call: ApiCall, lease: IndexLease) -> Any:
    query: CommunitiesQuery = call.query
    found, total = list_communities(
        filtered(call, lease), query.level, query.parent, query.sort, query.limit, query.offset
    )
    return lease.answer(communities=found, total=total)


def _community(call: ApiCall, lease: IndexLease) -> Any:
    return lease.answer(community=read_community(filtered(call, lease), call.path["key"], call.query.limit))


def _reports(call: ApiCall, lease: IndexLease) -> Any:
    query: ReportsQuery = call.query
    found, total = list_reports(filtered(call, lease), query.search, query.level, query.sort, query.limit, query.offset)
    return lease.answer(reports=found, total=total)


def _report(call: ApiCall, lease: IndexLease) -> Any:
    return lease.answer(report=read_report(filtered(call, lease), call.path["key"], call.query.limit))


ROUTES = (
    ApiRoute("GET", "/entities", _entities, EntityList, "List entities.", "graph", EntitiesQuery),
    ApiRoute("GET", "/entities/{key}", _entity, EntityAnswer, "Show an entity in full.", "graph", RecordQuery,
             path_params=NAMED),
    ApiRoute("GET", "/entities/{key}/neighbours", _neighbours, NeighboursAnswer, "Show the entities around one.",
             "graph", NeighboursQuery, path_params=NAMED),
    ApiRoute("GET", "/relationships", _relationships, RelationshipList, "List relationships.", "graph",
             RelationshipsQuery),
    ApiRoute("GET", "/relationships/{key}", _relationship, RelationshipAnswer, "Show a relationship in full.", "graph",
             RecordQuery, path_params={"key": "Number or id."}),
    ApiRoute("GET", "/communities", _communities, CommunityList, "List communities.", "graph", CommunitiesQuery),
    ApiRoute("GET", "/communities/{key}", _community, CommunityAnswer, "Show a community in full.", "graph",
             RecordQuery, path_params={"key": "Number, id, or the title of its report."}),
    ApiRoute("GET", "/reports", _reports, ReportList, "List community reports.", "graph", ReportsQuery),
    ApiRoute("GET", "/reports/{key}", _report, ReportAnswer, "Show a community report in full.", "graph", RecordQuery,
             path_params={"key": "Number, id or title."}),
)  # fmt: skip
