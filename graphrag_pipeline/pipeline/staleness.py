"""What is stale and why, and what failed, by comparing heads with the input folder, the settings and each other.

Only files are read, never Dagster's events. `find_stale` looks at what is there now: a stage below a stale one is
listed too (its inputs may come out equal, and then it is not run). Keep out: running anything.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import WHOLE, bucket_keys, bucket_of, stable_hash
from graphrag_pipeline.indexing.graph.overrides import find_unused, read_overrides
from graphrag_pipeline.inputs.documents import SourceRecord, build_corpus_manifest
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import (
    ALL_STAGES,
    CANDIDATE,
    SNAPSHOT,
    STAGES,
    Stage,
    asks_model,
    input_partitions,
    owner_of,
)
from graphrag_pipeline.settings.settings import OVERRIDES_FILE
from graphrag_pipeline.storage.history import refusal_of
from graphrag_pipeline.storage.table_store import Head, code_version_of, parquet_bytes
from graphrag_pipeline.tables import CORPUS_MANIFEST, MODEL_STAGES

INPUT = "input folder"
"""Name of the input folder among a head's inputs."""


@dataclass(frozen=True)
class CodeChange:
    """A prompt, model, setting, package or schema that is not the one a partition was made with.

    Attributes:
        name: as `stages.code_of` calls it, such as "prompt community_report" or "reports.max_words".
        old, new: values, hashes of prompts; None where there was, or is, none.
    """

    name: str
    old: Any
    new: Any

    def to_line(self) -> str:
        return f"{self.name} changed" if self.name.startswith("schema") else f"{self.name}: {self.old} -> {self.new}"


@dataclass(frozen=True)
class StalePartition:
    """One partition of a stage that has to run, and why.

    Attributes:
        reasons: in words, old and new values among them.
        changes: those of the reasons that are changes of prompts, models, settings or code.
    """

    stage: str
    partition: str
    reasons: tuple[str, ...]
    changes: tuple[CodeChange, ...] = ()


def detect_input(root: Root) -> dict[str, pa.Table]:
    """The corpus manifest as the input folder is now, by bucket."""
    n_buckets = root.settings.storage.n_buckets
    rows: dict[str, list[SourceRecord]] = {key: [] for key in bucket_keys(n_buckets)}
    for record in root.read_input():
        rows[bucket_of(record.document_id, n_buckets)].append(_without_text(record))
    return {key: build_corpus_manifest(records) for key, records in rows.items()}


def list_problems(manifests: Mapping[str, pa.Table]) -> list[tuple[str, str]]:
    """(path, problem) of every document that cannot be read, by path."""
    rows = [row for manifest in manifests.values() for row in manifest.select(["path", "problem"]).to_pylist()]
    return sorted((row["path"], row["problem"]) for row in rows if row["problem"])


def list_notes(manifests: Mapping[str, pa.Table]) -> list[tuple[str, str]]:
    """(path, note) of every document that was read although something was odd about it, by path."""
    rows = [row for manifest in manifests.values() for row in manifest.select(["path", "note"]).to_pylist()]
    return sorted((row["path"], row["note"]) for row in rows if row["note"])


@dataclass(frozen=True)
class ReportLag:
    """How many of all reports do not know all of their communities, and the largest share that is new to one."""

    n_reports: int
    n_waiting: int
    largest_new_share: float


def measure_lag(root: Root) -> ReportLag:
    """Which reports wait until more is new to them, as the heads have it (`reports.rewrite_share`)."""
    head = root.tables.head("community_reports", WHOLE)
    rows = root.tables.dataset([head]).to_table(columns=["new_share"]) if head else None
    shares = [share or 0.0 for share in rows["new_share"].to_pylist()] if rows else []  # none in rows of old releases
    return ReportLag(len(shares), sum(share > 0 for share in shares), max(shares, default=0.0))


def list_failures(root: Root) -> list[dict[str, str]]:
    """What got no usable reply of a model, as the heads have it: stage, partition and the columns of its table."""
    failures = []
    for name in MODEL_STAGES:
        for partition in STAGES[name].partitions(root.settings):
            head = root.tables.head(f"{name}_failures", partition)
            rows = root.tables.read_head(head).to_pylist() if head and head.n_rows else []
            failures += [{"stage": name, "partition": partition, **row} for row in rows]
    return failures


def list_unused_overrides(root: Root) -> list[str]:
    """Rows of entity_overrides.csv that name nobody in the graph there is, or what keeps them from being read."""
    try:
        overrides = read_overrides(root.read_file(OVERRIDES_FILE))
    except PipelineError as error:
        return str(error).split("\n")
    head = root.tables.head("entities") if overrides.num_rows else None
    return find_unused(overrides, root.tables.read_head(head)) if head else []


def _without_text(record: SourceRecord) -> SourceRecord:
    """The manifest needs no texts; a corpus of them would not fit in memory."""
    return dataclasses.replace(record, text="", metadata="{}")


def input_version(manifest: pa.Table) -> str:
    """Version of one bucket of the input folder: equal documents, equal version."""
    return files.content_hash(memoryview(parquet_bytes(CORPUS_MANIFEST.sort(manifest))))


def find_stale(root: Root, manifests: Mapping[str, pa.Table], asked: Collection[str] = ()) -> list[StalePartition]:
    """Every partition that has to run (or may have to, below one that does), in running order.

    Args:
        manifests: the input folder now, as `detect_input` gives it.
        asked: names of stages that somebody wants to run even if they are fresh.
    """
    versions = {bucket: input_version(manifest) for bucket, manifest in manifests.items()}
    return find_stale_versions(root, versions, asked)


def find_stale_versions(
    root: Root, input_versions: Mapping[str, str], asked: Collection[str] = ()
) -> list[StalePartition]:
    """Like `find_stale`, for an input folder of which only the version of each bucket is kept."""
    stale: dict[tuple[str, str], StalePartition] = {}
    for stage in ALL_STAGES.values():
        if stage is SNAPSHOT and root.snapshots.pinned():
            continue  # it waits for `unpin`, not for a run
        code = root.code_of(stage)
        for partition in stage.partitions(root.settings):
            folder_version = input_versions[partition] if stage.name == "corpus_manifest" else None
            reasons = (
                _above(stage, partition, root, stale)
                or why_stale(root, stage, partition, code, folder_version)
                or (["asked for"] if stage.name in asked else [])
            )
            if reasons:
                stale[stage.name, partition] = _with_changes(root, stage, partition, reasons, code)
    return list(stale.values())


def _with_changes(
    root: Root, stage: Stage, partition: str, reasons: Sequence[str], code: Mapping[str, Any]
) -> StalePartition:
    """A stale partition; one below a stale stage says what changed of its own too."""
    changes = find_code_changes(root, stage, partition, code)
    told = dict.fromkeys([*reasons, *(change.to_line() for change in changes)])
    return StalePartition(stage.name, partition, tuple(told), tuple(changes))


def find_changed_code(root: Root) -> list[str]:
    """Stages of the index there is that a prompt, a model, a setting or another release made stale, and why."""
    found = []
    for stage in (*STAGES.values(), CANDIDATE):
        code = root.code_of(stage)
        changes = (find_code_changes(root, stage, key, code) for key in stage.partitions(root.settings))
        changed = next((listed for listed in changes if listed), None)
        if changed:
            found.append(f"{stage.name}: {'; '.join(change.to_line() for change in changed)}")
    return found


def find_code_changes(root: Root, stage: Stage, partition: str, code: Mapping[str, Any]) -> list[CodeChange]:
    """What a partition was made with and what it would be made with now, where they differ, by name.

    Args:
        code: what the stage depends on now, from `Root.code_of`.
    """
    heads = (root.tables.head(table, partition) for table in owned_tables(stage))
    found: list[CodeChange] = []
    for head in heads:
        found += [change for change in (_code_changes(head, code) if head else []) if change not in found]
    return found


def _code_changes(head: Head, code: Mapping[str, Any]) -> list[CodeChange]:
    return [] if head.code_version == code_version_of(code) else find_version_changes(head.code, code)


def find_version_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[CodeChange]:
    """Where two versions of what a stage depends on differ, by name."""
    changes = (CodeChange(name, old.get(name), new.get(name)) for name in sorted({*old, *new}))
    return [change for change in changes if change.old != change.new]


def group_stale(stale: Iterable[StalePartition]) -> dict[tuple[str, str], list[str]]:
    """(stage, why) -> partitions: buckets that are stale for one reason are together."""
    partitions: dict[tuple[str, str], list[str]] = {}
    for item in stale:
        partitions.setdefault((item.stage, "; ".join(item.reasons)), []).append(item.partition)
    return partitions


def _above(stage: Stage, partition: str, root: Root, stale: Mapping[tuple[str, str], Any]) -> list[str]:
    if stage is SNAPSHOT:
        return [f"{CANDIDATE.name} is stale"] if (CANDIDATE.name, WHOLE) in stale else []
    pairs = [(owner_of(table).name, key) for table, key in input_partitions(stage, partition, root.settings)]
    above = sorted({name for name, key in pairs if (name, key) in stale}, key=list(STAGES).index)
    return [f"{', '.join(above)} stale"] if above else []


def why_stale(
    root: Root, stage: Stage, partition: str, code: Mapping[str, Any], input_folder_version: str | None = None
) -> list[str]:
    """Reasons why a partition must run, given that everything above it is fresh; empty if it need not.

    Args:
        code: what the stage depends on now, from `Root.code_of`.
        input_folder_version: version of the bucket of the input folder, for the stage that reads it.
    """
    if stage is SNAPSHOT:
        return _why_unpublished(root)
    owned = [root.tables.head(table, partition) for table in stage.tables or (CANDIDATE.name,)]
    missing = [table for table, head in zip(stage.tables, owned, strict=False) if head is None]
    if missing or owned[0] is None:
        return ["never materialised" if len(missing) in (0, len(stage.tables)) else f"{', '.join(missing)} missing"]
    inputs = current_inputs(root, stage, partition, input_folder_version)
    reasons: list[str] = []
    for head in owned:
        if head is not None:
            reasons += [reason for reason in _differences(head, code, inputs) if reason not in reasons]
    n_failed = sum(head.n_rows for head in owned if head is not None and head.table == f"{stage.name}_failures")
    if n_failed:
        reasons.append(f"{n_failed:,} failures to try again")
    if stage.name == "community_reports" and not reasons and asks_model(stage, root.settings):
        reasons += _why_overdue(root)
    if stage is CANDIDATE and not reasons:
        reasons += filter(None, [root.snapshots.find_damage(owned[0].data_version)])
    return reasons


def _why_overdue(root: Root) -> list[str]:
    lag, allowed = measure_lag(root), root.settings.reports.rewrite_share
    return (
        [f"reports lag behind by more than reports.rewrite_share: {allowed:g}"]
        if lag.largest_new_share > allowed
        else []
    )


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


def _differences(head: Head, code: Mapping[str, Any], inputs: Mapping[str, str | None]) -> list[str]:
    reasons = [change.to_line() for change in _code_changes(head, code)]
    if head.inputs != inputs:
        changed = sorted(name for name in {*head.inputs, *inputs} if head.inputs.get(name) != inputs.get(name))
        names = sorted({name.split("/")[0] for name in changed})
        reasons.append(f"{', '.join(names)} changed")
    return reasons


def _why_unpublished(root: Root) -> list[str]:
    candidate = root.tables.head(CANDIDATE.name)
    if candidate is None:
        return ["never materialised"]
    try:
        current = root.snapshots.current()
    except NoSnapshotError as error:
        return [str(error)]
    if current == candidate.data_version:
        return []
    refusal = refusal_of(root.snapshots, candidate.data_version)
    refused = f", which the golden questions refused: {refusal}" if refusal else ""
    return [f"published snapshot is {current}, candidate is {candidate.data_version}{refused}"]


def find_waiting(root: Root) -> str | None:
    """The candidate that `snapshots unpin` and `index` would publish; None if nothing waits."""
    candidate = root.tables.head(CANDIDATE.name)
    if root.snapshots.pinned() is None or candidate is None or candidate.data_version == root.snapshots.current():
        return None
    return candidate.data_version


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
