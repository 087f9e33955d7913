"""Options of the quality figures of an index: samples, and thresholds that warn.

A threshold is named after its figure, with `min_` or `max_` before it (`evaluation/index_quality/figures.py`). It never
blocks a publication. Keep out: conditions that block one (`PublishingSettings`).
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from graphrag_pipeline.settings.section import Section


def _at_least(default: float | None, what: str, most: float | None = 1) -> Any:
    return Field(default, ge=0, le=most, description=f"Warn below this {what}; null: never.")


def _at_most(default: float | None, what: str) -> Any:
    return Field(default, ge=0, le=1, description=f"Warn above this share of {what}; null: never.")


class QualitySettings(Section):
    """Quality figures of an index: what `evaluate --index` and each index run measure, and when they warn."""

    measure_after_publishing: bool = Field(
        True, description="Whether an index run measures the snapshot that it published, and shows warnings in Dagster."
    )
    n_compared_entities: int = Field(
        500, ge=0, description="Entities, evenly spread, whose nearest entities by vector are looked up; 0: none."
    )
    duplicate_similarity: float = Field(
        0.95, gt=0, le=1, description="Minimum cosine at which two entities of one type count as duplicates by vector."
    )
    n_compared_text_units: int = Field(
        25,
        ge=0,
        description="Text units of a model's extraction, evenly spread, that the embedded engine reads, too; 0: none.",
    )
    min_text_unit_coverage: float | None = _at_least(0.9, "share of text units that yield an entity")
    max_undescribed_entities: float | None = _at_most(0.25, "entities without a description")
    max_singletons: float | None = _at_most(0.4, "entities without a relationship")
    max_duplicates_by_name: float | None = _at_most(0.05, "entities whose name differs from another only in spelling")
    max_duplicates_by_vector: float | None = _at_most(0.05, "compared entities with a duplicate by vector")
    min_type_entropy: float | None = _at_least(0.5, "entropy of entity types, in bits", None)
    min_largest_component: float | None = _at_least(0.2, "share of entities in the largest connected component")
    min_claims_per_text_unit: float | None = _at_least(
        0.05, "number of claims a text unit, if claims are extracted", None
    )
    min_cited_findings: float | None = _at_least(0.8, "share of findings of reports with a valid citation")
    min_valid_citations: float | None = _at_least(0.98, "share of cited records of reports that exist")
    max_placeholders: float | None = _at_most(0.0, "records that repeat an example or a template of a prompt")
    min_engine_ratio: float | None = _at_least(
        0.5, "ratio of a model's entities a text unit to those of the embedded engine", None
    )
    min_engine_overlap: float | None = _at_least(
        0.3, "share of a model's entities that the embedded engine finds in the same text units"
    )
