"""Building blocks of settings sections: options that change a result, limits, and options for a model.

Keep out: the options themselves.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from graphrag_pipeline.ports import engines_with


class EngineOf:
    """Annotation of an option that names an engine: one of those that are installed and fill a port."""

    def __init__(self, port: str) -> None:
        self.port = port

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Accept the name of an installed engine."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """List the engines that are installed now."""
        return {"type": "string", "enum": engines_with(self.port)}

    def _check(self, name: str) -> str:
        known = engines_with(self.port)
        if name not in known:
            raise PydanticCustomError(
                "engine",
                "`{name}` is not an installed engine; write {known}",
                {"name": name, "known": " or ".join(known)},
            )
        return name


class Section(BaseModel):
    """A section of settings.yaml: frozen; an unknown option is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def uses_model(self) -> bool:
        """Whether a chat model makes the result of this section's step."""
        return getattr(self, "engine", None) == "model"

    def result_options(self) -> dict[str, Any]:
        """Return the options that change a result: all but limits and those of the engine that is not set."""
        engine = getattr(self, "engine", None)
        values = self.model_dump(mode="json")
        return {name: values[name] for name, field in type(self).model_fields.items() if _counts(field, engine)}


def _counts(field: FieldInfo, engine: str | None) -> bool:
    marks = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    return marks.get("engine") in (None, engine) and not marks.get("is_limit")


def limit(description: str, **constraints: Any) -> Any:
    """Define an option that limits resources or selects a model, and does not count as a change of the result."""
    return Field(description=description, json_schema_extra={"is_limit": True}, **constraints)


def for_model(default: Any, description: str, **constraints: Any) -> Any:
    """Define an option that counts only with `engine: model`."""
    marks: dict[str, Any] = {"engine": "model"}
    return Field(default, description=f"With a model: {description}", json_schema_extra=marks, **constraints)


def model_overrides() -> Any:
    """Define the option `model` of a section: other options for its chat model."""
    return limit(
        default_factory=dict,
        description="With a model: options that override those of chat_model, such as {model: gpt-4o-mini}.",
    )


LANGUAGE = "language to write in: auto (the language of the text) or a name, such as German."
