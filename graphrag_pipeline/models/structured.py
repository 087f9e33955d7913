"""Structured replies: JSON schemas for requests, and validation of replies by pydantic models.

An endpoint with `response_format` gets a strict schema. Another endpoint gets the schema as text in the prompt (see
`endpoints/openai_client.py`). In both cases `reply_json.py` reads the reply and accepts code fences, prose around the
object, trailing commas and a missing end. An object that does not fit the pydantic model is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.models.reply_json import read_json

M = TypeVar("M", bound=BaseModel)

MAX_TRIED = 20  # objects of a reply; real replies hold one, or a draft before it

CHARACTERS_PER_TOKEN = 4
MOST_CHARACTERS = 1900
"""Largest `maxLength` that is sent: llama.cpp refuses a grammar with 2,000 repetitions."""

_LEFT_OUT = frozenset({"default", "title"})


def json_schema_format(model: type[BaseModel], name: str | None = None) -> dict[str, Any]:
    """Return OpenAI's strict `response_format` for a pydantic model: all keys required, no other keys."""
    schema = _make_strict(model.model_json_schema())
    return {"type": "json_schema", "json_schema": {"name": name or model.__name__, "schema": schema, "strict": True}}


def bound_schema(response_format: Mapping[str, Any], limits: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a `response_format` whose schema has more keywords.

    Args:
        limits: keywords such as `maxItems`, `maxLength` or `enum`, by the name of the property that they limit.
    """
    bounded = _bound(response_format, limits) if limits else dict(response_format)
    return bounded if isinstance(bounded, dict) else {}


def text_limit(n_tokens: int) -> dict[str, int]:
    """Return the limit of a text that takes at most so many tokens of a reply."""
    return {"maxLength": min(MOST_CHARACTERS, CHARACTERS_PER_TOKEN * n_tokens)}


def list_limit(n_items: int, n_characters: int) -> dict[str, Any]:
    """Return the limit of a list of texts that may have so many characters.

    The schema allows twice as many, so that a text which is too long is seen to be so, and is not cut to a part.
    """
    return {"maxItems": n_items, "items": {"type": "string", "maxLength": min(MOST_CHARACTERS, 2 * n_characters)}}


def _bound(value: Any, limits: Mapping[str, Mapping[str, Any]]) -> Any:
    if isinstance(value, list):
        return [_bound(item, limits) for item in value]
    if not isinstance(value, dict):
        return value
    bounded = {key: _bound(item, limits) for key, item in value.items()}
    properties = value.get("properties")
    if isinstance(properties, dict):
        bounded["properties"] = {name: {**bounded["properties"][name], **limits.get(name, {})} for name in properties}
    return bounded


def describe_schema(response_format: Mapping[str, Any]) -> str:
    """Return the schema as an instruction, for an endpoint without `response_format`."""
    schema = response_format.get("json_schema", {}).get("schema")
    if schema is None:
        return "Answer with one JSON object and nothing else."
    text = json.dumps(schema, ensure_ascii=False, sort_keys=True)
    return f"Answer with one JSON object that fits this JSON schema, and nothing else:\n{text}"


def parse_reply(text: str, model: type[M]) -> M:
    """Return the first JSON object of a reply that fits a pydantic model.

    Raises:
        ReplyFormatError: no JSON object is found, or none fits; the message is also sent to the model.
    """
    problems = f"no JSON object found; the reply starts {text[:80]!r}"
    for number, candidate in enumerate(_objects(text)):
        try:
            return model.model_validate(candidate)
        except ValidationError as error:
            problems = problems if number else _describe(error)
    raise ReplyFormatError(problems)


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
