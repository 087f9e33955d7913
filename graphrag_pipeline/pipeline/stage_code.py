"""The code version of a stage: everything but its inputs that changes its result.

Versions are computed from settings and files on disk, never from loaded Dagster definitions. Keep out: files of the
root.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from graphrag_pipeline.pipeline.stages import CANDIDATE, STAGES, Stage
from graphrag_pipeline.settings.file import result_options
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.tables import CONTRACT_TABLES, STAGE_TABLES

UNUSABLE = "cannot be used"
"""How the version of a prompt begins that cannot be used; the reason follows."""


def code_of(
    stage: Stage,
    settings: Settings,
    embedding: Mapping[str, Any] | None = None,
    static_fingerprint: str = "",
    prompt_versions: Mapping[str, str] | None = None,
    engine_code: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return everything but its inputs that the result of a stage depends on, by names that a user recognises.

    Args:
        embedding: what vectors depend on, by name; None if the result does not depend on vectors.
        static_fingerprint: of the bundled static embeddings.
        prompt_versions: hash of every prompt of `prompts_of`.
        engine_code: what the engine that makes the result says of itself (`indexing.ports.Extractor.code`).
    """
    code: dict[str, Any] = {"algorithm": stage.algorithm}
    for use in stage.uses:
        section, _, key = use.partition(".")
        values = result_options(settings, section)
        code |= {f"{section}.{name}": value for name, value in values.items() if key in ("", name)}
    if uses_chat_model(stage, settings):
        model = settings.chat_model_for(stage.engine)
        code |= {f"{stage.engine} model": model.model, f"{stage.engine} parameters": model.parameters}
        if isinstance(model.context_window, int):  # roots without one keep their version
            code[f"{stage.engine} context window"] = model.context_window
        if model.cache_name:
            code[f"{stage.engine} cache name"] = model.cache_name
        code |= {f"prompt {name}": version for name, version in (prompt_versions or {}).items()}
    code |= engine_code or {}
    owned = CONTRACT_TABLES if stage is CANDIDATE else {name: STAGE_TABLES[name] for name in stage.tables}
    code |= {f"schema of {name}": table.schema_hash for name, table in owned.items()}
    for package in stage.packages:
        code[f"package {package}"] = installed_version(package)
    code |= embedding or {}
    if stage.embeds_statically:
        code["static embeddings"] = static_fingerprint
    return code


def uses_chat_model(stage: Stage, settings: Settings) -> bool:
    """Return whether a chat model makes the stage's result."""
    return bool(stage.engine) and bool(getattr(settings, stage.engine).uses_model)


def embeds(stage: Stage, settings: Settings) -> bool:
    """Return whether the result depends on the embedding model: always, or if `resolution` compares vectors."""
    return stage.embeds or (stage.engine == "resolution" and settings.resolution.is_semantic)


def asks_any_model(settings: Settings) -> bool:
    """Return whether the settings make any stage use a model."""
    return settings.embeddings.engine == "model" or any(uses_chat_model(stage, settings) for stage in STAGES.values())


def prompts_of(stage: Stage, settings: Settings) -> tuple[str, ...]:
    """Return the prompts that a stage sends under the settings."""
    if not uses_chat_model(stage, settings):
        return ()
    return tuple(name for name in stage.prompts if "claims" not in name or settings.extraction.has_claims)


@cache
def installed_version(package: str) -> str:
    """Return the version of an installed package; "not installed" without one."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
