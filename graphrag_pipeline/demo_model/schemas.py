"""Values that fit a JSON schema, by rule, as a constrained decoder guarantees.

Covers what structured replies use: objects, arrays, strings, numbers, booleans, enum, const, anyOf, $ref to $defs,
minimum and maximum, minItems. Known fields keep their values; the rest is filled deterministically.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphrag_pipeline.demo_model.prompts import number_of

_MAX_DEPTH = 12


def fit_schema(value: Any, schema: dict[str, Any], hint: str) -> Any:
    """`value` where it fits the schema; changed, or filled in from `hint` (some text of the prompt), where not."""
    return _Fitting(schema, hint).fit(value, schema, 0)


@dataclass(frozen=True, slots=True)
class _Fitting:
    root: dict[str, Any]
    hint: str

    def fit(self, value: Any, schema: dict[str, Any], depth: int) -> Any:
        if "$ref" in schema:
            target: Any = self.root
            for part in str(schema["$ref"]).removeprefix("#").strip("/").split("/"):
                target = target[part] if part else target
            return self.fit(value, target, depth + 1) if depth <= _MAX_DEPTH else None
        for word in ("anyOf", "oneOf", "allOf"):
            if word in schema:
                options = [option for option in schema[word] if option.get("type") != "null"] or schema[word]
                return self.fit(value, options[0], depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return value if value in schema["enum"] else schema["enum"][number_of(self.hint, len(schema["enum"]))]
        kinds = schema.get("type", "object" if "properties" in schema else "string")
        kind = next((one for one in kinds if one != "null"), "null") if isinstance(kinds, list) else kinds
        return self._fit_kind(kind, value, schema, depth)

    def _fit_kind(self, kind: str, value: Any, schema: dict[str, Any], depth: int) -> Any:
        match kind:
            case "object":
                given = value if isinstance(value, dict) else {}
                properties = schema.get("properties", {}) if depth <= _MAX_DEPTH else {}
                return {name: self.fit(given.get(name), part, depth + 1) for name, part in properties.items()} or given
            case "array":
                return self._fit_items(value, schema, depth)
            case "integer" | "number":
                number = self._fit_number(value, schema)
                return round(number) if kind == "integer" else float(number)
            case "boolean":
                return value if isinstance(value, bool) else bool(number_of(self.hint, 2))
            case "null":
                return None
        return value if isinstance(value, str) else self.hint

    def _fit_items(self, value: Any, schema: dict[str, Any], depth: int) -> list[Any]:
        if depth > _MAX_DEPTH:
            return []
        items = value if isinstance(value, list) else [None]
        n_missing = schema.get("minItems", 0) - len(items)
        items = items + (items[-1:] or [None]) * n_missing
        return [self.fit(item, schema.get("items", {}), depth + 1) for item in items]

    def _fit_number(self, value: Any, schema: dict[str, Any]) -> float:
        low, high = schema.get("minimum", 0), schema.get("maximum", 10)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(min(max(value, low), schema.get("maximum", value)))
        return float(low + number_of(self.hint, int(high - low) + 1))
