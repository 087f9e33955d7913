"""Data versions of stages: of the tables a stage owns, and of everything it reads."""

from __future__ import annotations

from collections.abc import Sequence

from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.pipeline.detected_input import INPUT
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import CANDIDATE, SNAPSHOT, Stage, input_partitions


def owned_tables(stage: Stage) -> tuple[str, ...]:
    """Names of the heads of a stage: its tables, or the stage itself for the candidate."""
    return stage.tables or ((CANDIDATE.name,) if stage is CANDIDATE else ())


def stage_data_version(root: Root, stage: Stage, partition: str) -> str | None:
    """The data version Dagster shows for a partition: of its one table, or the hash of those of its several."""
    if stage is SNAPSHOT:
        return root.snapshots.current()
    heads = [root.tables.head(table, partition) for table in owned_tables(stage)]
    return asset_data_version([head.data_version if head else None for head in heads])


def asset_data_version(table_versions: Sequence[str | None]) -> str | None:
    """The data version of an asset whose tables have these, in the order of its stage; None if one is missing."""
    versions = [version for version in table_versions if version is not None]
    is_whole = len(versions) == len(table_versions)
    return (versions[0] if len(versions) == 1 else stable_hash(*versions)) if is_whole else None


def current_inputs(
    root: Root, stage: Stage, partition: str, input_folder_version: str | None = None
) -> dict[str, str | None]:
    """Data version of everything a partition would read now."""
    inputs: dict[str, str | None] = {}
    if input_folder_version is not None:
        inputs[INPUT] = input_folder_version
    inputs |= file_versions(root, stage)
    for table, key in input_partitions(stage, partition, root.settings):
        head = root.tables.head(table, key)
        inputs[f"{table}/{key}"] = head.data_version if head else None
    return inputs


def file_versions(root: Root, stage: Stage) -> dict[str, str]:
    """Version of every file of the root that a stage reads; one that is missing counts as empty."""
    return {name: files.content_hash(root.read_file(name)) for name in stage.files}
