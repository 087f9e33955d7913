"""Routes that search: an answer whole or streamed, and the picks of all strategies side by side."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from graphrag_pipeline.query.context_style import ContextStyle
from graphrag_pipeline.query.index.explain import ExplainedPick, explain_strategies
from graphrag_pipeline.query.index.running import prepare_query
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.query.methods.state import SearchRequest
from graphrag_pipeline.query.rendering import context_to_dict, render_context
from graphrag_pipeline.query.results import (
    ClaimRecord,
    Context,
    EntityRecord,
    RelationshipRecord,
    ReportRecord,
    TextUnitRecord,
)
from graphrag_pipeline.query.search_result import SearchResult
from graphrag_pipeline.query.usage import ModelUsage
from graphrag_pipeline.serve.api_route import Answered, ApiCall, ApiRoute, Emit, ServerQuery
from graphrag_pipeline.serve.errors import InvalidRequestError, asking_models
from graphrag_pipeline.serve.limits import MAX_ITEMS, Filters, Options
from graphrag_pipeline.serve.served_roots import IndexLease
from graphrag_pipeline.settings.search_names import SEARCH_METHODS, STRATEGIES

_HISTORY = "conversation_history"

MethodName: Any = Literal[tuple(SEARCH_METHODS)]
StrategyName: Any = Literal[STRATEGIES]


class HistoryTurn(BaseModel):
    """A turn of the conversation before the question."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["user", "assistant"]
    content: str


class SearchBody(BaseModel):
    """A question."""

    model_config = ConfigDict(extra="forbid")

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


class SearchQuery(ServerQuery):
    """Parameters of a search in the query string."""

    root: str = Field("", max_length=200, description="Name of the root; needed only if several are served.")


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


class ExplainAnswer(Answered):
    """The picks of every strategy of local search, that of the request first."""

    question: str
    strategies: list[str]
    picks: list[ExplainedPick]


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

    Args:
        emit: takes the events.

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


def _search(call: ApiCall, lease: IndexLease) -> Any:
    answer = to_answer(lease, run_request(call, lease, read_request(call.body), call.body.context_only, call.emit))
    if call.emit:
        call.emit("result", answer)
    return answer


def _explain(call: ApiCall, lease: IndexLease) -> ExplainAnswer:
    body: SearchBody = call.body
    if "strategy" not in METHODS[body.method].options:
        raise InvalidRequestError("Only local search has selection strategies.", "Use the method `local`.")
    index, request = lease.index.within(call.scope), read_request(body)
    query = prepare_query(index, request)
    with asking_models(index.settings):
        picks = explain_strategies(index.where(query.filters), query.question, query.settings)
    return ExplainAnswer(
        root=lease.name,
        snapshot=lease.snapshot,
        question=body.question,
        strategies=list(dict.fromkeys(pick.strategy for pick in picks)),
        picks=picks,
    )


ROUTES = (
    ApiRoute("POST", "/search", _search, SearchAnswer, "Answer a question, or choose the context for an answer.",
             "search", SearchQuery, SearchBody, is_search=True, streams="wanted"),
    ApiRoute("POST", "/search/stream", _search, SearchAnswer,
             "Answer a question as events: context, token, result or error.", "search", SearchQuery, SearchBody,
             is_search=True, streams="always"),
    ApiRoute("POST", "/explain", _explain, ExplainAnswer, "Show the picks of all strategies side by side.", "search",
             SearchQuery, SearchBody, is_search=True),
)  # fmt: skip
