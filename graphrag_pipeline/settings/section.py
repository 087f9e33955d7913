"""The base of the sections of a settings file, and its small sections: quality, schedule, notifications, tuning."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from graphrag_pipeline.nearest import suggest
from graphrag_pipeline.ports import engines_with
from graphrag_pipeline.settings.search_names import SampleMethod


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
        fields = type(self).model_fields.items()
        return {name: values[name] for name, field in fields if _counts(field, engine, values[name])}


def _counts(field: FieldInfo, engine: str | None, value: Any) -> bool:
    """Return whether an option changes a result; a glossary counts once it has a term, so old versions stay."""
    marks = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    is_set = bool(value) or not marks.get("counts_if_set")
    return marks.get("engine") in (None, engine) and not marks.get("is_limit") and is_set


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


THRESHOLDS: Mapping[str, float] = {
    "min_text_unit_coverage": 0.9,
    "max_undescribed_entities": 0.25,
    "max_singletons": 0.4,
    "max_duplicates_by_name": 0.05,
    "max_duplicates_by_vector": 0.05,
    "min_type_entropy": 0.5,  # bits
    "min_largest_component": 0.2,
    "min_claims_per_text_unit": 0.05,
    "min_cited_findings": 0.8,
    "min_valid_citations": 0.98,
    "max_placeholders": 0.0,
    "min_engine_ratio": 0.5,
    "min_engine_overlap": 0.3,
    "min_averaged_cosine": 0.9,
}
"""Threshold -> its default, a share if no unit is named."""


class QualitySettings(Section):
    """Quality figures of an index: what `evaluate --index` and each index run measure, and when they warn."""

    measure_after_publishing: bool = Field(
        True, description="Whether an index run measures the snapshot that it published, and shows warnings in Dagster."
    )
    thresholds: dict[str, float | None] = Field(
        {},
        description="Changed thresholds, such as {max_singletons: 0.6}; null: never. `evaluate --index` lists all.",
    )

    @field_validator("thresholds")
    @classmethod
    def _are_known(cls, thresholds: dict[str, float | None]) -> dict[str, float | None]:
        for name, value in thresholds.items():
            if name not in THRESHOLDS:
                raise ValueError(f"unknown threshold {name!r}{suggest(name, THRESHOLDS)}")
            if value is not None and value < 0:
                raise ValueError(f"{name} is {value:g}, not a number from 0 on")
        return thresholds

    def threshold(self, name: str) -> float | None:
        """Return a threshold; None if it never warns."""
        return self.thresholds.get(name, THRESHOLDS[name])


class _ScheduleSection(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScheduleSettings(_ScheduleSection):
    """Automatic indexing by Dagster, and retention of its run records; all off by default."""

    watch_input: bool = Field(
        False, description="Whether the sensor on the input folder is on from the start; else switch it on in the UI."
    )
    watch_interval_s: int = Field(
        60, ge=5, description="Seconds between checks of the input folder; a change is indexed once two checks agree."
    )
    run_cron: bool = Field(
        False, description="Whether the cron schedule is on from the start; else switch it on in the UI."
    )
    cron: str = Field("0 3 * * *", description="Cron expression of the schedule.")
    timezone: str = Field("UTC", description="Time zone of the cron expressions, such as Europe/Berlin.")
    run_verify: bool = Field(
        False,
        description="Whether the schedule of the job verify_files is on from the start; else switch it on in the UI.",
    )
    verify_cron: str = Field("0 4 * * 0", description="Cron expression of the job verify_files.")
    run_code_changes: bool = Field(
        False,
        description="Whether sensor and schedule also run stages that a changed prompt, model or setting made "
        "stale; this may cost as much as a full build.",
    )
    fan_out: bool = Field(
        False,
        description="Whether the sensor that spreads stale buckets over the run queue is on from the start, one run a "
        "bucket; needs storage.url.",
    )
    follow_data: bool = Field(
        False,
        description="Whether assets have automation conditions: the input is observed at the times of the cron "
        "expression, and only assets below a changed result run.",
    )
    fresh_within_hours: float | None = Field(
        None, gt=0, description="Freshness policy of index_snapshot: hours after which it is late; null: no policy."
    )
    keep_runs_days: int | None = Field(
        None,
        ge=1,
        description="Days after which an indexing run deletes Dagster's records of old runs; null: keep all.",
    )


class NotificationsSettings(_ScheduleSection):
    """Notification at the end of an indexing run."""

    webhook: str = Field(
        "", description="URL that receives JSON by POST; $NAME is replaced by that environment variable; empty: off."
    )


SET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Pattern of the name of a tuned set, which is the name of its folder."""


class TuningSettings(Section):
    """`tune`: a chat model writes prompts for this corpus from a sample of its text units."""

    adopted: str = Field(
        "",
        description="Tuned set whose prompts replace those in prompts/; `tune adopt` and `tune revert` set it. Empty: "
        "none.",
    )
    model: dict[str, Any] = model_overrides()

    @field_validator("adopted")
    @classmethod
    def _is_set_name(cls, name: str) -> str:
        if name and not SET_NAME.fullmatch(name):
            raise ValueError("not the name of a tuned set: letters, digits, `.`, `_` and `-`")
        return name


class TuningSample(Section):
    """Options of one run of `tune`."""

    sample: SampleMethod = Field(
        "random",
        description="Choice of text units: random; bucket (the same number from each bucket); centroid (nearest to the "
        "mean vector, as Microsoft GraphRAG's auto); clusters (nearest to the means of as many clusters).",
    )
    size: int = Field(15, ge=1, description="Number of text units in the sample.")
    seed: int = Field(86, ge=0, description="Random seed of the sample.")
    n_examples: int = Field(
        3,
        ge=0,
        le=10,
        description="Maximum examples in the extraction prompt; twice as many are written, the best that leave room "
        "for a text unit and its reply in the model's window are kept.",
    )
