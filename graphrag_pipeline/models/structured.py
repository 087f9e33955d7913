"""Structured replies: the JSON schema to ask for, and reading JSON from whatever came instead.

An endpoint that knows `response_format` gets a strict schema; one that does not gets the schema in words (see
`openai_client.py`). Either way the reply is read here: code fences, prose around the object, trailing commas and cut
ends are forgiven (json-repair); what then does not fit the pydantic model is not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from graphrag_pipeline.models.ports import ReplyFormatError

M = TypeVar("M", bound=BaseModel)

MAX_REPAIR = 200_000  # characters; above this only correct JSON is read
MAX_DEPTH = 100

_FENCE = re.compile(r"```[a-zA-Z0-9]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)
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
    """Read a reply as a pydantic model.

    Raises:
        ReplyFormatError: no JSON object can be found, or it does not fit; the message is fit for the model.
    """
    try:
        return model.model_validate(parse_json(text))
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, one['loc'])) or 'reply'}: {one['msg']}" for one in error.errors()[:5])
        raise ReplyFormatError("the JSON does not fit the schema: " + "; ".join(problems)) from None
    except RecursionError:
        raise ReplyFormatError("the JSON is nested too deeply") from None


def parse_json(text: str) -> dict[str, Any]:
    """The JSON object in a reply.

    Raises:
        ReplyFormatError: there is none.
    """
    for candidate in _candidates(text):
        value = _load(candidate)
        if isinstance(value, dict):
            return value
    raise ReplyFormatError(f"no JSON object found; the reply starts {text[:80]!r}")


def _candidates(text: str) -> list[str]:
    found = [text.strip()]
    fence = _FENCE.search(text)
    if fence:
        found.append(fence.group(1).strip())
    start, end = text.find("{"), text.rfind("}")
    if start >= 0:
        found.append(text[start : end + 1] if end > start else text[start:])
    return found


def _load(text: str) -> object:
    """The value of a JSON text, mended if need be; None if it is hopeless."""
    if not text.startswith(("{", "[")):
        return None
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        if len(text) > MAX_REPAIR or _depth(text) > MAX_DEPTH:
            return None
    from json_repair import repair_json

    try:
        return json.loads(repair_json(text), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _depth(text: str) -> int:
    depth = deepest = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


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
