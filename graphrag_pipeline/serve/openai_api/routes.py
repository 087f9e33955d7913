"""Routes `/v1/models` and `/v1/chat/completions`."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import Path, Query
from starlette.responses import Response

from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.query.methods.state import SearchRequest
from graphrag_pipeline.query.search_result import SearchResult
from graphrag_pipeline.reading.shared_keys import shared_key
from graphrag_pipeline.serve.answers import answer_json, write_json
from graphrag_pipeline.serve.api_route import EVENTS, Key, make_router
from graphrag_pipeline.serve.endpoint import ApiCall, Call, Emit, permitted_roots
from graphrag_pipeline.serve.errors import InvalidRequestError, NotFoundError, NotReadyError
from graphrag_pipeline.serve.openai_api.footnotes import (
    FootnoteStream,
    drop_footnotes,
    find_references,
    write_footnotes,
)
from graphrag_pipeline.serve.openai_api.wire import (
    AnsweringMessage,
    ChatBody,
    ChatChoice,
    ChatCompletion,
    ChatUsage,
    CitationAnnotation,
    CitedUrl,
    ModelFacts,
    ModelList,
    OpenAIErrorAnswer,
    split_model,
)
from graphrag_pipeline.serve.queries import ServerQuery
from graphrag_pipeline.serve.routes.search import run_request
from graphrag_pipeline.serve.served_roots import IndexLease
from graphrag_pipeline.settings.search_names import SEARCH_METHODS

_HISTORY = "conversation_history"
ModelKey = Annotated[Key, Path(description="`root:method`")]


routes = make_router("openai", OpenAIErrorAnswer)


@routes.get("/v1/models", response_model=ModelList)
async def models(query: Annotated[ServerQuery, Query()], call: Call) -> Response:
    """List models: each root with each method."""
    found = await asyncio.to_thread(_list_models, call)
    return answer_json(write_json(ModelList(data=found)))


@routes.get("/v1/models/{model}", response_model=ModelFacts)
async def model(model: ModelKey, query: Annotated[ServerQuery, Query()], call: Call) -> Response:
    """Show one model."""
    for one in await asyncio.to_thread(_list_models, call):
        if one.id == model:
            return answer_json(write_json(one))
    raise _no_such_model(model)


def _list_models(call: ApiCall) -> list[ModelFacts]:
    found = []
    for name, filters in permitted_roots(call.app, call.reader).items():
        try:
            with call.app.served.lease(name, filters) as lease:
                created = lease.root.snapshots.created_ns(lease.snapshot) // 10**9
        except NotReadyError:
            continue
        found += [ModelFacts(id=f"{name}:{method}", created=created) for method in SEARCH_METHODS]
    return found


def _no_such_model(name: str) -> NotFoundError:
    return NotFoundError(f"There is no model `{name[:80]}`.", "GET /v1/models lists all: `root:method`.")


@routes.post("/v1/chat/completions", response_model=ChatCompletion, responses={200: {"content": EVENTS}})
async def chat_completions(query: Annotated[ServerQuery, Query()], body: ChatBody, call: Call) -> Response:
    """Answer the last message of the user; sources are annotations and footnotes."""
    if body.method not in SEARCH_METHODS:
        raise _no_such_model(body.model)
    request = _read_request(body)
    if body.stream:
        return await call.stream(
            body.root_name, body.snapshot, lambda lease, emit: _stream(call, lease, body, request, emit)
        )
    return await call.search(body.root_name, body.snapshot, lambda lease: _complete(call, lease, body, request))


def _complete(call: ApiCall, lease: IndexLease, body: ChatBody, request: SearchRequest) -> ChatCompletion:
    result = run_request(call, lease, request)
    content = _whole_content(result)
    message = AnsweringMessage(content=content, annotations=_annotate(call, lease, result, content))
    return ChatCompletion(**_head(lease, body), choices=[ChatChoice(message=message)], usage=_usage(result))


def _whole_content(result: SearchResult) -> str:
    pieces = FootnoteStream()
    return pieces.take(result.answer) + pieces.finish() + write_footnotes(result.citations)


def _stream(call: ApiCall, lease: IndexLease, body: ChatBody, request: SearchRequest, emit: Emit) -> None:
    """Emit the chunks of the answer; references are footnotes, and the last chunk has the annotations."""
    head = {**_head(lease, body), "object": "chat.completion.chunk"}
    pieces, written = FootnoteStream(), []

    def send(delta: Mapping[str, Any], finish_reason: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        emit("", {**head, "choices": [choice]})

    def send_text(text: str) -> None:
        if text:
            written.append(text)
            send({"content": text})

    def on_event(name: str, data: Any) -> None:
        if not written:  # only now, so that a request that does not hold has its status
            written.append("")
            send({"role": "assistant", "content": ""})
        if name == "token":
            send_text(pieces.take(data["text"]))

    result = run_request(call, lease, request, emit=on_event)
    send_text(pieces.finish())
    send_text(write_footnotes(result.citations))
    annotations = _annotate(call, lease, result, "".join(written))
    send({"annotations": [one.model_dump() for one in annotations]}, "stop")
    if body.stream_options and body.stream_options.include_usage:
        emit("", {**head, "choices": [], "usage": _usage(result).model_dump()})
    emit("", "[DONE]")


def _read_request(body: ChatBody) -> SearchRequest:
    """Return the question with its history.

    Raises:
        InvalidRequestError: no message of the user, or one without text.
    """
    places = [place for place, message in enumerate(body.messages) if message.role == "user"]
    if not places:
        raise InvalidRequestError("No message has the role `user`.", "Add the question as a message of the user.")
    question = body.messages[places[-1]].text
    turns = [
        (message.role, drop_footnotes(message.text) if message.role == "assistant" else message.text)
        for message in body.messages[: places[-1]]
        if message.role in ("user", "assistant")
    ]
    reads_history = _HISTORY in METHODS[body.method].options or body.method == "auto"
    options = {_HISTORY: turns} if turns and reads_history else {}
    return SearchRequest(question, body.method, body.strategy, tuple(body.filters), {**options, **body.options})


def _head(lease: IndexLease, body: ChatBody) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{secrets.token_hex(12)}",
        "created": int(time.time()),
        "model": f"{lease.name}:{split_model(body.model)[1]}",
        "system_fingerprint": lease.snapshot,
        "snapshot": lease.snapshot,
        "root": lease.name,
    }


def _usage(result: SearchResult) -> ChatUsage:
    used = result.usage.by_model.values()
    read, written = sum(one.input_tokens for one in used), sum(one.output_tokens for one in used)
    return ChatUsage(prompt_tokens=read, completion_tokens=written, total_tokens=read + written)


def _annotate(call: ApiCall, lease: IndexLease, result: SearchResult, content: str) -> list[CitationAnnotation]:
    """Return an annotation for each reference of the answer."""
    cited = {citation.number: citation for citation in result.citations}
    return [
        CitationAnnotation(
            url_citation=CitedUrl(
                start_index=start,
                end_index=end,
                title=cited[number].document_title,
                url=_url(call, lease, cited[number].document_id, cited[number].start, cited[number].end),
                quote=cited[number].quote,
                document_id=cited[number].document_id,
                start=cited[number].start,
                end=cited[number].end,
                record=cited[number].record,
            )
        )
        for number, start, end in find_references(content)
        if number in cited
    ]


def _url(call: ApiCall, lease: IndexLease, document: str, start: int | None, end: int | None) -> str:
    place = {} if start is None else {"start": start, "end": end}
    query = urlencode({"root": lease.name, "snapshot": lease.snapshot, **place})
    key = shared_key(lease.index.snapshot, document)
    return f"{call.base_url}/documents/{quote(key, safe='')}/text?{query}"
