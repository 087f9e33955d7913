"""The route that suggests what to ask next."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from graphrag_pipeline.query.suggestions.suggested import MAX_QUESTIONS, SuggestedQuestion
from graphrag_pipeline.serve.api_route import make_router
from graphrag_pipeline.serve.endpoint import Call
from graphrag_pipeline.serve.errors import asking_models
from graphrag_pipeline.serve.limits import MAX_ITEMS, Filters
from graphrag_pipeline.serve.queries import Answered, NamedRootQuery, StrictBody
from graphrag_pipeline.serve.routes.search import HistoryTurn, UsageFacts
from graphrag_pipeline.serve.served_roots import IndexLease


class FollowUpsBody(StrictBody):
    """A conversation; empty before its first question."""

    question: str = Field("", description='The latest question; "" is the latest of the history.')
    history: list[HistoryTurn] = Field(default_factory=list, max_length=MAX_ITEMS, description="Turns, oldest first.")
    filters: Filters = Field(default_factory=list)
    n: int = Field(5, ge=1, le=MAX_QUESTIONS, description="Most questions.")
    snapshot: str | None = Field(None, max_length=64, description="Id of an earlier snapshot, or its beginning.")


class FollowUpsAnswer(Answered):
    """Questions that a reader might ask next, best first."""

    questions: list[SuggestedQuestion]
    engine: str = Field(description="embedded or model")
    failure: str = Field(description='Why a model gave none; "" otherwise.')
    usage: UsageFacts
    seconds: float


routes = make_router("search")


@routes.post("/follow-ups", response_model=FollowUpsAnswer)
async def follow_ups(query: Annotated[NamedRootQuery, Query()], body: FollowUpsBody, call: Call) -> Response:
    """Suggest what to ask next."""

    def work(lease: IndexLease) -> dict[str, Any]:
        turns = [(turn.role, turn.content) for turn in body.history]
        index = lease.index.within(call.scope).where(body.filters)
        with asking_models(index.settings):
            found = index.suggest_questions(body.question, turns, body.n)
        return {"root": lease.name, **found.to_dict()}

    return await call.search(query.root, body.snapshot, work)
