"""Routes in the form of OpenAI's API, so that chat programs can ask an index as if it were a model.

Sources of an answer are footnotes in Markdown, which are taken out of the turns that a program sends back.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.query.methods.state import SearchRequest
from graphrag_pipeline.query.rendering import MAX_QUOTE_SHOWN
from graphrag_pipeline.query.results import Citation, name_place
from graphrag_pipeline.query.search_result import SearchResult
from graphrag_pipeline.reading.lookup import shared_key
from graphrag_pipeline.serve.api_route import EVENTS, Key, ServerQuery, make_router
from graphrag_pipeline.serve.endpoint import ApiCall, Call, Emit, permitted_roots
from graphrag_pipeline.serve.errors import InvalidRequestError, NotFoundError, NotReadyError, answer_json, write_json
from graphrag_pipeline.serve.limits import Filters, MethodText, Options
from graphrag_pipeline.serve.routes.search import run_request
from graphrag_pipeline.serve.served_roots import IndexLease
from graphrag_pipeline.settings.search_names import SEARCH_METHODS

MAX_MESSAGES = 1_000


class _Sent(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class ContentPart(_Sent):
    """A part of a message; only text is read."""

    type: str
    text: str | None = None


class ChatMessage(_Sent):
    """A message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Annotated[list[ContentPart], Field(max_length=MAX_MESSAGES)] | None = None

    @property
    def text(self) -> str:
        """The text of all parts."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.text)
        return self.content or ""


class StreamOptions(_Sent):
    """Options of a stream."""

    include_usage: bool = False


class ChatBody(_Sent):
    """A conversation whose last message of the user is the question; earlier turns are its history.

    `strategy`, `filters`, `options` and `snapshot` are additions; a client sends them as `extra_body`.
    """

    model: str = Field(min_length=1, max_length=300, description="`root:method`; of one root, `method` is enough.")
    messages: list[ChatMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = 1
    strategy: MethodText | None = None
    filters: Filters = Field(default_factory=list)
    options: Options = Field(default_factory=dict)
    snapshot: str | None = Field(None, max_length=64)

    @property
    def root_name(self) -> str:
        """The root that the model names; "" if it names a method alone."""
        return split_model(self.model)[0]

    @property
    def method(self) -> str:
        """The search method that the model names."""
        return split_model(self.model)[1]


def split_model(name: str) -> tuple[str, str]:
    """Return root and method of a model's name; a root alone means the method `auto`."""
    root, colon, method = name.rpartition(":")
    if colon:
        return root, method
    return ("", name) if name in SEARCH_METHODS else (name, "auto")


class ModelFacts(BaseModel):
    """A root and a search method."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "graphrag_pipeline"


class ModelList(BaseModel):
    """All models that the reader may ask."""

    object: Literal["list"] = "list"
    data: list[ModelFacts]


class ChatCompletion(BaseModel):
    """An answer; `system_fingerprint` and `snapshot` are the id of the snapshot that it comes from."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    system_fingerprint: str
    snapshot: str
    root: str
    choices: list[dict[str, Any]] = Field(description="One, with OpenAI's fields and annotations `url_citation`.")
    usage: dict[str, int] = Field(description="`prompt_tokens`, `completion_tokens` and `total_tokens`.")


class OpenAIErrorFacts(BaseModel):
    """An error in OpenAI's form."""

    message: str
    type: str
    param: None = None
    code: str


class OpenAIErrorAnswer(BaseModel):
    """Any answer of these routes that is not a success."""

    error: OpenAIErrorFacts


_MARKER = re.compile(r"\[(\d{1,3})\](?!\()")
_REFERENCE = re.compile(r"\[\^(\d{1,3})\]")
_BEGUN = re.compile(r"\[\d{0,3}\]?\Z")
_FOOTNOTES = re.compile(r"^\[\^\d{1,3}\]: .*$\n?", re.MULTILINE)


class FootnoteStream:
    """Rewriter of an answer that comes in pieces; the end of a piece that may begin a marker waits for the next."""

    def __init__(self) -> None:
        self._waiting = ""

    def take(self, piece: str) -> str:
        """Return the text that is complete."""
        text = self._waiting + piece
        begun = _BEGUN.search(text)
        cut = begun.start() if begun else len(text)
        self._waiting = text[cut:]
        return refer(text[:cut])

    def finish(self) -> str:
        """Return the text that still waits."""
        text, self._waiting = self._waiting, ""
        return refer(text)


def refer(text: str) -> str:
    """Return a text with references to footnotes instead of markers."""
    return _MARKER.sub(r"[^\1]", text)


def write_footnotes(citations: Sequence[Citation]) -> str:
    """Return the footnotes of an answer, with two line ends before them; "" without citations."""
    lines = [f"[^{citation.number}]: {_describe(citation)}" for citation in citations]
    return "\n\n" + "\n".join(lines) if lines else ""


def _describe(citation: Citation) -> str:
    quote = " ".join(citation.quote.split())
    shown = quote if len(quote) <= MAX_QUOTE_SHOWN else f"{quote[:MAX_QUOTE_SHOWN].rsplit(' ', 1)[0]} ..."
    return f"{' '.join(name_place(citation).split())}: \u201c{shown}\u201d"


def find_references(text: str) -> list[tuple[int, int, int]]:
    """Return (number, start, end) of each reference of a text, without its footnotes."""
    body = _FOOTNOTES.split(text)[0]
    return [(int(match[1]), match.start(), match.end()) for match in _REFERENCE.finditer(body)]


def drop_footnotes(text: str) -> str:
    """Return an earlier answer without footnotes and references, as history."""
    return _REFERENCE.sub("", _FOOTNOTES.sub("", text)).strip()


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
    """Answer the last message of the user; sources are annotations and footnotes.

    Beyond OpenAI's fields, an answer names its `root` and `snapshot`, and each citation has `quote`, `document_id`,
    `start` and `end` (offsets in the document) and `record`; its `url` returns the quoted text.
    """
    if body.method not in SEARCH_METHODS:
        raise _no_such_model(body.model)
    request = _read_request(body)
    if body.stream:
        return await call.stream(
            body.root_name, body.snapshot, lambda lease, emit: _stream(call, lease, body, request, emit)
        )
    return await call.search(body.root_name, body.snapshot, lambda lease: _complete(call, lease, body, request))


def _complete(call: ApiCall, lease: IndexLease, body: ChatBody, request: SearchRequest) -> dict[str, Any]:
    result = run_request(call, lease, request)
    pieces = FootnoteStream()
    content = pieces.take(result.answer) + pieces.finish() + write_footnotes(result.citations)
    message = {
        "role": "assistant",
        "content": content,
        "refusal": None,
        "annotations": _annotate(call, lease, result, content),
    }
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {**_head(lease, body), "object": "chat.completion", "choices": [choice], "usage": _usage(result)}


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
    send({"annotations": annotations}, "stop")
    if body.stream_options and body.stream_options.include_usage:
        emit("", {**head, "choices": [], "usage": _usage(result)})
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


def _usage(result: SearchResult) -> dict[str, int]:
    """Return the tokens of the models that answered; of the embedded engine, those that it read."""
    used = result.usage.by_model.values()
    read, written = sum(one.input_tokens for one in used), sum(one.output_tokens for one in used)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _annotate(call: ApiCall, lease: IndexLease, result: SearchResult, content: str) -> list[dict[str, Any]]:
    """Return an annotation for each reference of the answer."""
    cited = {citation.number: citation for citation in result.citations}
    found = []
    for number, first, last in find_references(content):
        if number in cited:
            one = cited[number]
            place = {"start_index": first, "end_index": last, "title": one.document_title}
            source = {name: getattr(one, name) for name in ("quote", "document_id", "start", "end", "record")}
            url = _url(call, lease, one.document_id, one.start, one.end)
            found.append({"type": "url_citation", "url_citation": {**place, "url": url, **source}})
    return found


def _url(call: ApiCall, lease: IndexLease, document: str, start: int | None, end: int | None) -> str:
    place = {} if start is None else {"start": start, "end": end}
    query = urlencode({"root": lease.name, "snapshot": lease.snapshot, **place})
    key = shared_key(lease.index.snapshot, document)
    return f"{call.base_url}/documents/{quote(key, safe='')}/text?{query}"
