"""Options of `tune`, which writes prompts for the corpus, and the name of the tuned set in force.

Keep out: the tuned prompts (`pipeline/tuned_sets.py`).
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field, field_validator

from graphrag_pipeline.settings.search_names import SampleMethod
from graphrag_pipeline.settings.section import Section, model_overrides

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
