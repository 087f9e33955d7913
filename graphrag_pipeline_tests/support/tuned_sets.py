"""A tuned set for tests that need one without a model."""

from __future__ import annotations

from graphrag_pipeline.pipeline.tuned_sets import TunedSet

EMPTY_SET = TunedSet(
    name="empty",
    fingerprint="0",
    model={"model": "test-chat", "parameters": {}},
    options={"sample": "random", "size": 1, "seed": 0},
    sample=(),
    languages={},
    domain="ships",
    language="English",
    persona="You are a sailor.",
    entity_types=("SHIP", "PORT"),
    rating={},
    examples=(),
    refused={},
    remarks=(),
    bases={},
    prompts={},
    settings={"extraction": {"entity_types": ["SHIP", "PORT"]}},
)
