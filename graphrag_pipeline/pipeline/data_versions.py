"""Data versions of stages: of the tables a stage owns, and of everything it reads."""

from __future__ import annotations

from collections.abc import Sequence

from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.pipeline.detected_input import INPUT
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import CANDIDATE, SNAPSHOT, Stage, input_partitions


def owned_tables(stage: Stage) -> tuple[str, ...]:
    """Return the names of a stage's heads: its tables, or the stage itself for the candidate."""
    return stage.tables or ((CANDIDATE.name,) if stage is CANDIDATE else ())


def stage_data_version(root: Root, stage: Stage, partition: str) -> str | None:
    """Return the data version that Dagster shows for a partition: of its one table, or a hash over its tables."""
    if stage is SNAPSHOT:
        return root.snapshots.current()
    heads = [root.tables.head(table, partition) for table in owned_tables(stage)]
    return asset_data_version([head.data_version if head else None for head in heads])


def asset_data_version(table_versions: Sequence[str | None]) -> str | None:
    """Return the data version of an asset from those of its tables, in their order; None if one is missing."""
    versions = [version for version in table_versions if version is not None]
    is_whole = len(versions) == len(table_versions)
    return (versions[0] if len(versions) == 1 else stable_hash(*versions)) if is_whole else None


def current_inputs(
    root: Root, stage: Stage, partition: str, input_folder_version: str | None = None
) -> dict[str, str | None]:
    """Return the data version of everything that a partition would read now."""
    inputs: dict[str, str | None] = {}
    if input_folder_version is not None:
        inputs[INPUT] = input_folder_version
    inputs |= file_versions(root, stage)
    for table, key in input_partitions(stage, partition, root.settings):
        head = root.tables.head(table, key)
        inputs[f"{table}/{key}"] = head.data_version if head else None
    return inputs


def file_versions(root: Root, stage: Stage) -> dict[str, str]:
    """Return the version of every file of the root that a stage reads; a missing file counts as empty."""
    return {name: files.content_hash(root.read_file(name)) for name in stage.files}
