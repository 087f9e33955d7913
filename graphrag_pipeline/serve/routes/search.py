"""Routes that ask: an answer whole or streamed, the picks of all strategies side by side, and what to ask next."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from graphrag_pipeline.evaluation.feedback import add_feedback
from graphrag_pipeline.query.index.explain import ExplainedPick, explain_strategies
from graphrag_pipeline.query.index.graph_index import prepare_query
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.query.methods.state import SearchRequest
from graphrag_pipeline.query.rendering import ContextStyle, context_to_dict, render_context
from graphrag_pipeline.query.results import (
    ClaimRecord,
    Context,
    EntityRecord,
    RelationshipRecord,
    ReportRecord,
    TextUnitRecord,
)
from graphrag_pipeline.query.search_result import SearchResult
from graphrag_pipeline.query.suggestions.suggested import MAX_QUESTIONS, SuggestedQuestion
from graphrag_pipeline.query.token_budget import ModelUsage
from graphrag_pipeline.serve.api_route import EVENTS, Answered, NamedRootQuery, StrictBody, answer_model, make_router
from graphrag_pipeline.serve.endpoint import ApiCall, Call, Emit
from graphrag_pipeline.serve.errors import ApiError, InvalidRequestError, asking_models
from graphrag_pipeline.serve.limits import MAX_ITEMS, Filters, Options
from graphrag_pipeline.serve.served_roots import IndexLease
from graphrag_pipeline.settings.search_names import SEARCH_METHODS, STRATEGIES

_HISTORY = "conversation_history"

MethodName: Any = Literal[tuple(SEARCH_METHODS)]
StrategyName: Any = Literal[STRATEGIES]


class HistoryTurn(StrictBody):
    """A turn of the conversation before the question."""

    role: Literal["user", "assistant"]
    content: str


class SearchBody(StrictBody):
    """A question."""

    question: str = Field(min_length=1, description="In words; of more than 8,000 characters the ends are read.")
    method: MethodName = Field("local", description="Search method.")
    strategy: StrategyName | None = Field(None, description="How local search chooses text units.")
    filters: Filters = Field(default_factory=list)
    options: Options = Field(default_factory=dict)
    history: list[HistoryTurn] = Field(
        default_factory=list, max_length=MAX_ITEMS, description="Conversation so far, oldest first; for local search."
    )
    context_only: bool = Field(False, description="Choose the context and write no answer.")
    snapshot: str | None = Field(None, max_length=64, description="Id of an earlier snapshot, or its beginning.")


class CitationFacts(BaseModel):
    """The source of one statement; `[number]` marks it in the answer.

    `document.text[start:end] == quote` where offsets are known.
    """

    number: int
    kind: str
    id: str
    human_readable_id: int
    text_unit_id: str
    document_id: str
    document_title: str
    quote: str
    start: int | None
    end: int | None
    text_unit: int
    document_path: str
    first_page: int | None
    last_page: int | None
    document_date: str | None
    record: str


class ContextFacts(BaseModel):
    """The records that were read, each table in rank order; a record has `in_context` where candidates were wanted."""

    entities: list[EntityRecord]
    relationships: list[RelationshipRecord]
    reports: list[ReportRecord]
    claims: list[ClaimRecord]
    text_units: list[TextUnitRecord]


class UsageFacts(BaseModel):
    """Calls, tokens and US dollars of the models."""

    calls: int
    cached: int
    tokens: int
    cost: float
    by_model: dict[str, ModelUsage]


class SearchAnswer(Answered):
    """The answer with everything needed to check it."""

    answer: str = Field(description='Markdown; "" if only the context was wanted.')
    citations: list[CitationFacts]
    context: ContextFacts
    context_text: str = Field(description="The context as a model reads it.")
    usage: UsageFacts
    seconds: float
    method: str
    question: str
    selection: dict[str, Any] = Field(description="How the context was chosen.")
    answering: dict[str, Any] = Field(description="How the answer was written.")


def read_request(body: SearchBody) -> SearchRequest:
    """Return the question as the searches take it.

    Raises:
        InvalidRequestError: a history for a method that reads none, or one that is given twice.
    """
    options = dict(body.options)
    if body.history:
        if _HISTORY in options:
            raise InvalidRequestError(f"`history` and the option `{_HISTORY}` are both given.", "Give one of them.")
        if _HISTORY not in METHODS[body.method].options and body.method != "auto":
            raise InvalidRequestError(f"{body.method} search reads no `history`.", "Use the method `local` or `auto`.")
        options[_HISTORY] = [(turn.role, turn.content) for turn in body.history]
    return SearchRequest(body.question, body.method, body.strategy, tuple(body.filters), options)


def run_request(
    call: ApiCall, lease: IndexLease, request: SearchRequest, context_only: bool = False, emit: Emit | None = None
) -> SearchResult:
    """Search, with events for a stream: the context once it is chosen, and the answer in pieces.

    Raises:
        PipelineError: the request does not hold.
        ApiError: a model gave no answer.
    """
    index = lease.index.within(call.scope)
    query = prepare_query(index, request)
    on_context = (lambda found: emit("context", _context_event(lease, found))) if emit else None
    on_token = (lambda text: emit("token", {"text": text})) if emit else None
    with asking_models(index.settings):
        result = index.run_query(query, request, context_only, on_context, on_token)
    used = result.usage.by_model.values()
    call.app.metrics.count_search(
        request.method, sum(one.input_tokens for one in used), sum(one.output_tokens for one in used)
    )
    return result


def _context_event(lease: IndexLease, context: Context) -> dict[str, Any]:
    return {"root": lease.name, "snapshot": lease.snapshot, "context": context_to_dict(context)}


def to_answer(lease: IndexLease, result: SearchResult) -> dict[str, Any]:
    """Return the answer to a search as plain values, in the form of `SearchAnswer`."""
    text = render_context(result.context, ContextStyle.of_selection(result.selection))
    return {"root": lease.name, **result.to_dict(), "context_text": text}


routes = make_router("search")


@routes.post("/search", response_model=SearchAnswer)
async def search(query: Annotated[NamedRootQuery, Query()], body: SearchBody, call: Call) -> Response:
    """Answer a question, or choose the context for an answer."""
    return await call.search(query.root, body.snapshot, lambda lease: _search(call, lease, body))


@routes.post("/search/stream", response_class=Response, responses={200: {"content": EVENTS}})
async def search_stream(query: Annotated[NamedRootQuery, Query()], body: SearchBody, call: Call) -> Response:
    """Answer a question as events: context, token, result or error."""

    def work(lease: IndexLease, emit: Emit) -> None:
        emit("result", _search(call, lease, body, emit))

    return await call.stream(query.root, body.snapshot, work)


def _search(call: ApiCall, lease: IndexLease, body: SearchBody, emit: Emit | None = None) -> dict[str, Any]:
    return to_answer(lease, run_request(call, lease, read_request(body), body.context_only, emit))


@routes.post(
    "/explain",
    response_model=answer_model("ExplainAnswer", question=str, strategies=list[str], picks=list[ExplainedPick]),
)
async def explain(query: Annotated[NamedRootQuery, Query()], body: SearchBody, call: Call) -> Response:
    """Show the picks of all strategies side by side."""
    if "strategy" not in METHODS[body.method].options:
        raise InvalidRequestError("Only local search has selection strategies.", "Use the method `local`.")
    return await call.search(query.root, body.snapshot, lambda lease: _explain(call, lease, body))


def _explain(call: ApiCall, lease: IndexLease, body: SearchBody) -> dict[str, Any]:
    index = lease.index.within(call.scope)
    query = prepare_query(index, read_request(body))
    with asking_models(index.settings):
        picks = explain_strategies(index.where(query.filters), query.question, query.settings)
    strategies = list(dict.fromkeys(pick.strategy for pick in picks))
    return lease.answer(question=body.question, strategies=strategies, picks=picks)


class FeedbackBody(StrictBody):
    """What a reader thinks of an answer."""

    rating: Literal["up", "down"]
    question: str = Field(min_length=1, max_length=8_000)
    answer: str = Field("", max_length=100_000, description="As it was shown.")
    correction: str = Field("", max_length=8_000, description="What the answer should have said.")
    documents: list[str] = Field(default_factory=list, max_length=MAX_ITEMS, description="Paths that the answer cites.")
    snapshot: str | None = Field(None, max_length=64, description="Id of the snapshot that answered.")


@routes.post("/feedback", response_model=answer_model("FeedbackAnswer", id=str))
async def feedback(query: Annotated[NamedRootQuery, Query()], body: FeedbackBody, call: Call) -> Response:
    """Keep feedback on an answer in a file of the root; the index does not change."""
    if not call.reader.may_give_feedback:
        raise ApiError(403, "not_permitted", "Your key may not give feedback.", "The operator sets `feedback: true`.")

    def work(lease: IndexLease) -> dict[str, Any]:
        place = call.app.served.root(lease.name).path  # not a view, which is made again
        texts = body.question, body.answer, body.correction
        given = add_feedback(place, call.reader.name, body.rating, *texts, lease.snapshot, body.documents)
        return lease.answer(id=given.id)

    return await call.search(query.root, body.snapshot, work)


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
