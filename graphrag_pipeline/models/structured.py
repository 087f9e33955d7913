"""Structured replies: the JSON schema to ask for, and the pydantic model that must come of whatever came instead.

An endpoint that knows `response_format` gets a strict schema; one that does not gets the schema in words (see
`openai_client.py`). Either way the reply is read by `reply_json.py`, which forgives code fences, prose around the
object, trailing commas and cut ends; what then does not fit the pydantic model is not forgiven.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.models.reply_json import read_json

M = TypeVar("M", bound=BaseModel)

MAX_TRIED = 20  # objects of a reply; a real one has one, or a draft before it

_LEFT_OUT = frozenset({"default", "title"})


def json_schema_format(model: type[BaseModel], name: str | None = None) -> dict[str, Any]:
    """OpenAI's strict `response_format` for a pydantic model: all keys required, no others."""
    schema = _make_strict(model.model_json_schema())
    return {"type": "json_schema", "json_schema": {"name": name or model.__name__, "schema": schema, "strict": True}}


def describe_schema(response_format: Mapping[str, Any]) -> str:
    """The same demand in words, for an endpoint without `response_format`."""
    schema = response_format.get("json_schema", {}).get("schema")
    if schema is None:
        return "Answer with one JSON object and nothing else."
    text = json.dumps(schema, ensure_ascii=False, sort_keys=True)
    return f"Answer with one JSON object that fits this JSON schema, and nothing else:\n{text}"


def parse_reply(text: str, model: type[M]) -> M:
    """Read a reply as a pydantic model: the first of its JSON objects that fits.

    Raises:
        ReplyFormatError: no JSON object can be found, or none fits; the message is fit for the model.
    """
    problems = f"no JSON object found; the reply starts {text[:80]!r}"
    for number, candidate in enumerate(_objects(text)):
        try:
            return model.model_validate(candidate)
        except ValidationError as error:
            problems = problems if number else _describe(error)
    raise ReplyFormatError(problems)


def parse_json(text: str) -> dict[str, Any]:
    """The first JSON object in a reply.

    Raises:
        ReplyFormatError: there is none.
    """
    for value in _objects(text):
        return value
    raise ReplyFormatError(f"no JSON object found; the reply starts {text[:80]!r}")


def _objects(text: str) -> list[dict[str, Any]]:
    return [value for value in read_json(text) if isinstance(value, dict)][:MAX_TRIED]


def _describe(error: ValidationError) -> str:
    problems = (f"{'.'.join(map(str, one['loc'])) or 'reply'}: {one['msg']}" for one in error.errors()[:5])
    return "the JSON does not fit the schema: " + "; ".join(problems)


def _make_strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_make_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    is_object = schema.get("type") == "object" and "properties" in schema
    strict: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            strict[key] = {name: _make_strict(part) for name, part in value.items()}
        elif key not in _LEFT_OUT:
            strict[key] = _make_strict(value)
    if is_object:
        strict |= {"additionalProperties": False, "required": list(schema["properties"])}
    return strict
