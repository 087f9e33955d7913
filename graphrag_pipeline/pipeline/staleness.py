"""Stale partitions and why they are stale, by comparing heads with the input folder, the settings and each other.

Only files are read, never Dagster's events. `find_stale` sees the present state only: a stage below a stale one is
listed too, although its inputs may come out equal, and then it is not run. Keep out: running anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.models.ports import NOT_ASKED_AGAIN
from graphrag_pipeline.pipeline.code_changes import CodeChange, find_code_changes, find_head_changes
from graphrag_pipeline.pipeline.data_versions import current_inputs
from graphrag_pipeline.pipeline.detected_input import input_versions
from graphrag_pipeline.pipeline.open_work import measure_lag
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stage_code import uses_chat_model
from graphrag_pipeline.pipeline.stages import ALL_STAGES, CANDIDATE, SNAPSHOT, STAGES, Stage, input_partitions, owner_of
from graphrag_pipeline.storage.snapshot_store import read_review, refusal_of
from graphrag_pipeline.storage.table_store import Head


@dataclass(frozen=True)
class StalePartition:
    """One partition of a stage that has to run, and why.

    Attributes:
        reasons: in words, with old and new values.
        changes: the changes of prompts, models, settings or code among the reasons.
    """

    stage: str
    partition: str
    reasons: tuple[str, ...]
    changes: tuple[CodeChange, ...] = ()


def find_stale(root: Root, manifests: Mapping[str, pa.Table], requested: Collection[str] = ()) -> list[StalePartition]:
    """Return every partition that has to run, or may have to because it is below one that does, in running order.

    Args:
        manifests: the present input folder, from `detect_input`.
        requested: names of stages to run even if they are fresh.
    """
    return find_stale_versions(root, input_versions(manifests), requested)


def find_stale_versions(
    root: Root, input_versions: Mapping[str, str], requested: Collection[str] = ()
) -> list[StalePartition]:
    """Return what `find_stale` returns, given only the version of each bucket of the input folder."""
    stale: dict[tuple[str, str], StalePartition] = {}
    for stage in ALL_STAGES.values():
        if stage is SNAPSHOT and (root.snapshots.pinned() or _is_in_review(root, stale)):
            continue  # only `unpin` or a reviewer publishes it, not a run
        code = root.code_of(stage)
        for partition in stage.partitions(root.settings):
            folder_version = input_versions[partition] if stage.name == "corpus_manifest" else None
            reasons = (
                _above(stage, partition, root, stale)
                or why_stale(root, stage, partition, code, folder_version)
                or (["asked for"] if stage.name in requested else [])
            )
            if reasons:
                stale[stage.name, partition] = _with_changes(root, stage, partition, reasons, code)
    return list(stale.values())


def _is_in_review(root: Root, stale: Collection[tuple[str, str]]) -> bool:
    """Whether the newest candidate waits for review or was rejected in it, and no other one has to be made."""
    candidate = None if (CANDIDATE.name, WHOLE) in stale else root.tables.head(CANDIDATE.name)
    return candidate is not None and bool(read_review(root.snapshots, candidate.data_version))


def _with_changes(
    root: Root, stage: Stage, partition: str, reasons: Sequence[str], code: Mapping[str, Any]
) -> StalePartition:
    """Return a stale partition; one below a stale stage also lists the changes of its own code."""
    changes = find_code_changes(root, stage, partition, code)
    lines = dict.fromkeys([*reasons, *(change.to_line() for change in changes)])
    return StalePartition(stage.name, partition, tuple(lines), tuple(changes))


def _above(stage: Stage, partition: str, root: Root, stale: Mapping[tuple[str, str], Any]) -> list[str]:
    if stage is SNAPSHOT:
        return [f"{CANDIDATE.name} is stale"] if (CANDIDATE.name, WHOLE) in stale else []
    pairs = [(owner_of(table).name, key) for table, key in input_partitions(stage, partition, root.settings)]
    above = sorted({name for name, key in pairs if (name, key) in stale}, key=list(STAGES).index)
    return [f"{', '.join(above)} stale"] if above else []


def group_stale(stale: Iterable[StalePartition]) -> dict[tuple[str, str], list[str]]:
    """Return (stage, why) -> partitions, so that buckets which are stale for one reason are together."""
    partitions: dict[tuple[str, str], list[str]] = {}
    for item in stale:
        partitions.setdefault((item.stage, "; ".join(item.reasons)), []).append(item.partition)
    return partitions


def why_stale(
    root: Root,
    stage: Stage,
    partition: str,
    code: Mapping[str, Any],
    input_folder_version: str | None = None,
    has_files: bool = True,
) -> list[str]:
    """Return the reasons why a partition must run, given that all stages above are fresh; empty if it need not.

    Args:
        code: what the stage depends on now, from `Root.code_of`.
        input_folder_version: version of the bucket of the input folder, for the stage that reads it.
        has_files: whether the tables and snapshots are here; else only heads are compared, without failures.
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
    if not has_files:
        return reasons
    failures = [head for head in owned if head is not None and head.table == f"{stage.name}_failures"]
    if n_failed := sum(len(list_askable(root, head)) for head in failures):
        reasons.append(describe_retry(n_failed))
    if stage.name == "community_reports" and not reasons and uses_chat_model(stage, root.settings):
        reasons += _why_overdue(root)
    if stage is CANDIDATE and not reasons:
        reasons += filter(None, [root.snapshots.find_damage(owned[0].data_version)])
    return reasons


def describe_retry(n_failed: int) -> str:
    """Return the reason of a partition with failures that another run requests again."""
    return f"{n_failed:,} failures to try again"


def list_askable(root: Root, failures: Head) -> list[dict[str, Any]]:
    """Return the failures of a partition that another run requests again, with the columns of their table."""
    rows = root.tables.read_head(failures).to_pylist() if failures.n_rows else []
    return [row for row in rows if NOT_ASKED_AGAIN not in row["reason"]]


def _why_overdue(root: Root) -> list[str]:
    lag, allowed = measure_lag(root), root.settings.reports.rewrite_share
    return (
        [f"reports lag behind by more than reports.rewrite_share: {allowed:g}"]
        if lag.largest_new_share > allowed
        else []
    )


def _differences(head: Head, code: Mapping[str, Any], inputs: Mapping[str, str | None]) -> list[str]:
    reasons = [change.to_line() for change in find_head_changes(head, code)]
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
