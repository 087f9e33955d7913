"""The demo model over HTTP: chat completions, streamed or whole, embeddings, and the list of its two models.

Any name of a model and any key is served. Keep out: the rules that answer (`replies.py`), and everything that a client
needs no stand-in for: faults, limits, batches.
"""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from graphrag_pipeline.demo_model import shapes
from graphrag_pipeline.demo_model.replies import name_kind, reply_to
from graphrag_pipeline.demo_model.requests import (
    UnreadableRequestError,
    approximate_tokens,
    count_input_tokens,
    count_message_tokens,
    hash_request,
    read_body,
    read_conversation,
    read_inputs,
    read_model,
    reply_limit,
)
from graphrag_pipeline.demo_model.vectors import embed

CHAT_MODEL = "demo-chat"
EMBEDDING_MODEL = "demo-embedding"
DIMENSIONS = 256
"""Of a vector, if the request names no number: enough to keep the words of a passage apart."""


async def complete(request: Request) -> Response:
    """Answer a conversation by rule."""
    content = await request.body()
    body = read_body(content)
    model, conversation = read_model(body), read_conversation(body)
    key = hash_request("chat", model, content)
    text, reason = shapes.cut_text(reply_to(name_kind(conversation), conversation), reply_limit(body))
    message = shapes.message_of(key, text, conversation.tool)
    usage = shapes.usage_of(sum(count_message_tokens(conversation)), approximate_tokens(text))
    if not body.get("stream"):
        return JSONResponse(shapes.completion(key, model, message, reason, usage, int(body.get("n") or 1)))
    shown = usage if (body.get("stream_options") or {}).get("include_usage") else None
    events = shapes.stream(key, model, shapes.deltas_of(message), shapes.end_of(message, reason), shown)
    return StreamingResponse(events, media_type="text/event-stream")


async def embed_inputs(request: Request) -> Response:
    """Embed texts or token ids by their hashed words."""
    body = read_body(await request.body())
    model, inputs = read_model(body), read_inputs(body.get("input"))
    vectors = [embed(one, body.get("dimensions") or DIMENSIONS) for one in inputs]
    encoding = body.get("encoding_format") or "float"
    return JSONResponse(shapes.embeddings(model, vectors, encoding, sum(count_input_tokens(inputs))))


async def list_models(request: Request) -> Response:
    """List the names that the start of the server suggests."""
    return JSONResponse(shapes.models([CHAT_MODEL, EMBEDDING_MODEL]))


async def _refuse(request: Request, error: Exception) -> Response:
    """Say what a request lacks."""
    return JSONResponse(shapes.error(str(error)), status_code=400)


def build_app() -> Starlette:
    """Return the application; it keeps nothing between requests."""
    routes = [
        Route("/v1/chat/completions", complete, methods=["POST"]),
        Route("/v1/embeddings", embed_inputs, methods=["POST"]),
        Route("/v1/models", list_models, methods=["GET"]),
    ]
    return Starlette(routes=routes, exception_handlers={UnreadableRequestError: _refuse})
