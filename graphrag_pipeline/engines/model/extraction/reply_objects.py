"""JSON replies of extraction: objects as fields of records, for many spellings of keys.

Objects are found at every depth: in a list, in lists under "entities" and "relationships", one object per line, or in
lists whose first item names the kind of record.

Keep out: parsing of JSON (`models/reply_json.py`) and of fields (`reply_fields.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphrag_pipeline.models.reply_json import read_json

_KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "entity": (
        ("name", "entity_name", "entity", "title", "id"),
        ("type", "entity_type", "category", "label"),
        ("description", "entity_description", "summary"),
    ),
    "relationship": (
        ("source", "source_entity", "source_name", "from", "head", "subject"),
        ("target", "target_entity", "target_name", "to", "tail", "object"),
        ("description", "relationship_description", "relationship", "relation", "type"),
        ("strength", "relationship_strength", "weight", "score"),
    ),
    "claim": (
        ("subject", "subject_entity", "entity"),
        ("object", "object_entity"),
        ("type", "claim_type", "category"),
        ("status", "claim_status"),
        ("start", "start_date", "claim_start_date"),
        ("end", "end_date", "claim_end_date"),
        ("description", "claim_description", "claim"),
        ("source", "source_text", "claim_source", "quote"),
    ),
}
_N_NEEDED = {"entity": 1, "relationship": 2, "claim": 1}


def iterate_objects(reply: str, kinds: tuple[str, ...]) -> tuple[list[tuple[str, list[str]]], bool]:
    """Find records in the JSON of a reply.

    Returns:
        (kind, fields) in the order of the reply, and whether the reply holds records or empty JSON.
    """
    values = read_json(reply)
    found: list[tuple[str, list[str]]] = []
    stack = list(reversed(values))
    while stack:
        value = stack.pop()
        row = _read_object(value, kinds) if isinstance(value, dict) else _read_list(value, kinds)
        if row is not None:
            found.append(row)
        else:
            inner = list(value.values()) if isinstance(value, dict) else value
            stack += [item for item in reversed(inner) if isinstance(item, dict | list)]
    return found, bool(found) or any(_is_empty_graph(value) for value in values)


def _is_empty_graph(value: Any) -> bool:
    """Whether the JSON is [] or an object of empty lists."""
    items = value.values() if isinstance(value, dict) else value
    return all(item == [] for item in items)


def _read_object(value: Mapping[str, Any], kinds: tuple[str, ...]) -> tuple[str, list[str]] | None:
    keys = {str(key).strip().casefold().replace(" ", "_"): item for key, item in value.items()}
    for kind in ("claim", "relationship", "entity"):
        if kind in kinds:
            names = _KEYS[kind]
            fields = [next((_as_text(keys[name]) for name in group if name in keys), "") for group in names]
            if all(fields[: _N_NEEDED[kind]]) and any(fields[_N_NEEDED[kind] :]):
                return kind, fields
    return None


def _read_list(value: list, kinds: tuple[str, ...]) -> tuple[str, list[str]] | None:
    kind = value[0].casefold() if value and isinstance(value[0], str) else ""
    return (kind, [_as_text(item) for item in value[1:]]) if kind in kinds else None


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(item for item in value if isinstance(item, str))
    return str(value) if isinstance(value, int | float) else ""
