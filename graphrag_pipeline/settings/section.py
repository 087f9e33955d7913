"""What the sections of the settings are made of: which options change a result, and which only bound what is used.

Keep out: the options themselves.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

Engine = Literal["embedded", "model"]


class Section(BaseModel):
    """A section of settings.yaml: frozen, and no option is unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def result_options(self) -> dict[str, Any]:
        """Options that change a result: all but limits and those of an engine that is not set."""
        engine = getattr(self, "engine", None)
        values = self.model_dump(mode="json")
        return {name: values[name] for name, field in type(self).model_fields.items() if _counts(field, engine)}


def _counts(field: FieldInfo, engine: str | None) -> bool:
    marks = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    return marks.get("engine") in (None, engine) and not marks.get("is_limit")


def limit(description: str, **constraints: Any) -> Any:
    """An option that bounds what a stage uses, or says whom it asks, not what it makes."""
    return Field(description=description, json_schema_extra={"is_limit": True}, **constraints)


def for_model(default: Any, description: str, **constraints: Any) -> Any:
    """An option that counts only where `engine: model` is set."""
    marks: dict[str, Any] = {"engine": "model"}
    return Field(default, description=f"model: {description}", json_schema_extra=marks, **constraints)


def model_overrides() -> Any:
    """The option `model` of a section: what it asks of another model, or in another way."""
    return limit(
        default_factory=dict,
        description="model: options over those of chat_model, such as {model: gpt-4o-mini}.",
    )


LANGUAGE = "language to write in: auto (the text's own) or a name, such as German."
