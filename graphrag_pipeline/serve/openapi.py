"""The OpenAPI 3.1 document of the declared routes.

Keep out: serving it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from pydantic import TypeAdapter

from graphrag_pipeline.serve.api_route import ApiRoute

_REF = "#/components/schemas/{model}"
_EVENT = {
    "type": "object",
    "description": "An event of the stream; its data is JSON, or `[DONE]` at the end of OpenAI's streams.",
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
}
_ERRORS = {
    400: "The request does not validate, or a filter, option or strategy does not hold.",
    401: "No valid key or token.",
    404: "There is no such root, snapshot or record for this client.",
    405: "The path has no such method.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    414: "The address is too long.",
    415: "The body is not JSON.",
    421: "The header Host names another server.",
    429: "Too many requests at once; try again after the seconds of `Retry-After`.",
    431: "The headers are too large.",
    500: "A defect of the server.",
    502: "A model gave no answer.",
    503: "No index can be read now.",
    504: "The time limit is over.",
}


def describe_routes(routes: Sequence[ApiRoute]) -> dict[str, Any]:
    """Return the document."""
    adapters = {f"answer of {n}": (route.adapter, "serialization") for n, route in enumerate(routes)}
    adapters |= {
        f"body of {n}": (TypeAdapter(route.body), "validation") for n, route in enumerate(routes) if route.body
    }
    adapters |= {f"error of {n}": (TypeAdapter(route.error), "serialization") for n, route in enumerate(routes)}
    inputs = [(key, mode, adapter) for key, (adapter, mode) in adapters.items()]
    schemas, definitions = TypeAdapter.json_schemas(inputs, ref_template=_REF)  # type: ignore[arg-type]
    of_key = {key: schema for (key, _), schema in schemas.items()}
    paths: dict[str, dict[str, Any]] = {}
    for n, route in enumerate(routes):
        operation = _describe(route, of_key[f"answer of {n}"], of_key.get(f"body of {n}"), of_key[f"error of {n}"])
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "graphrag_pipeline",
            "version": version("graphrag-pipeline"),
            "description": "Searches and records of published GraphRAG indexes, read only.",
        },
        "paths": paths,
        "components": {
            "schemas": definitions.get("$defs", {}),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}, {}],
    }


def _describe(route: ApiRoute, answer: Any, body: Any, error: Any) -> dict[str, Any]:
    is_stream = route.streams == "always"
    content: dict[str, Any] = {} if is_stream else {route.media_type: {"schema": answer}}
    if route.streams != "never":
        content["text/event-stream"] = {"schema": _EVENT}
    described: dict[str, Any] = {
        "operationId": _name_operation(route),
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": {
            "200": {"description": "The answer.", "content": content},
            **{str(status): _describe_error(what, error) for status, what in _ERRORS.items()},
        },
    }
    if body is not None:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return described


def _describe_error(what: str, error: Any) -> dict[str, Any]:
    return {"description": what, "content": {"application/json": {"schema": error}}}


def _name_operation(route: ApiRoute) -> str:
    words = route.path.replace("{", "").replace("}", "").replace("-", "_").strip("/").split("/")
    return "_".join([route.method.lower(), *words])


def _path_parameters(route: ApiRoute) -> list[dict[str, Any]]:
    schema = {"type": "string", "minLength": 1, "maxLength": 500}
    return [
        {"name": name, "in": "path", "required": True, "description": what, "schema": schema}
        for name, what in route.path_params.items()
    ]


def _query_parameters(route: ApiRoute) -> list[dict[str, Any]]:
    schema = route.query.model_json_schema()
    required = set(schema.get("required", ()))
    return [_parameter(name, one, name in required) for name, one in schema.get("properties", {}).items()]


def _parameter(name: str, schema: Mapping[str, Any], is_required: bool) -> dict[str, Any]:
    shown = {key: value for key, value in schema.items() if key not in ("description", "title")}
    return {
        "name": name,
        "in": "query",
        "required": is_required,
        "description": schema.get("description", ""),
        "schema": shown,
    }
