"""Options of the quality figures of an index, and the thresholds that warn.

A threshold is named after its figure, with `min_` or `max_` before it (`evaluation/index_quality/figures.py`). It never
blocks a publication. Keep out: conditions that block one (`PublishingSettings`).
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, field_validator

from graphrag_pipeline.nearest import suggest
from graphrag_pipeline.settings.section import Section

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
