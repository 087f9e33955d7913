"""Metadata and events of `index_snapshot` in the UI: the published snapshot, its rows and its changes.

Keep out: publishing, and the event that confirms the snapshot as up to date (`defs/index_runs/missing_events.py`).
"""

from __future__ import annotations

import getpass
import shlex
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.defs.runs.naming import ASSET_JOB, KIND_TAG, STARTED_BY_TAG, asset_key
from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.inspection.snapshot_diff import diff_snapshots, render_diff
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import SNAPSHOT
from graphrag_pipeline.storage.shared.state import manifest_name
from graphrag_pipeline.storage.snapshot_store import describe_snapshot
from graphrag_pipeline.storage.snapshots import Snapshot

if TYPE_CHECKING:
    from dagster import AssetMaterialization, DagsterInstance, DagsterRun, EventLogRecord

COUNTED = ("documents", "text_units", "entities", "relationships", "communities")
"""Contract tables whose rows show the size of an index."""

_SUBJECTS = {**{name: name.replace("_", " ") for name in COUNTED}, "covariates": "claims"}
"""Contract table -> its rows in the UI."""
_MAX_LISTED = 20
_MAX_SEARCHED = 100  # publications
_MAX_CHANGES = 200  # of a kind, in the difference: an event is a row of Dagster's database
DIFFERENCE = "difference to the snapshot before"
"""Name of what changed from one publication to the next, everywhere in the UI; every event of a snapshot has it."""
_RUN = "run that published the snapshot"
_PUBLISHER = "published by"
_OF_ONE_RUN = ("reused", "seconds to make it")
"""Metadata of a run, which another run that finds the same snapshot does not show."""
_CHANGES = ("added", "edited", "removed")


def of_snapshot(root: Root, snapshot_id: str, before: Snapshot | None = None) -> dict[str, Any]:
    """Return metadata of a snapshot: row counts, creation time, its documents, and the changed ones.

    Args:
        before: the snapshot that was published before; None: nothing was.

    Raises:
        NoSnapshotError: the snapshot was removed.
    """
    import dagster as dg

    facts = describe_snapshot(root.snapshots, snapshot_id)
    counts = {_SUBJECTS[name]: facts.rows[name] for name in _SUBJECTS if facts.rows.get(name)}
    made = dg.MetadataValue.timestamp(datetime.fromisoformat(facts.created))
    with closing(root.snapshots.open(snapshot_id)) as snapshot:
        changes = _of_changes(root, before, snapshot) if before else {DIFFERENCE: "nothing was published before"}
        listed = _list_documents(snapshot)
    return {
        "snapshot": snapshot_id,
        "made at": made,
        **_places(root, snapshot_id),
        **counts,
        **changes,
        "documents in it": dg.MetadataValue.md(listed),
    }


def of_review(root: Root, candidate: str) -> dict[str, Any]:
    """Return metadata of a candidate that waits for review, or was rejected in it."""
    import dagster as dg

    from graphrag_pipeline.inspection.review import review_candidate, to_markdown

    review = review_candidate(root, candidate)
    shown = {"not published": candidate, "why": review.reason, "review": dg.MetadataValue.md(to_markdown(review))}
    return {**shown, "snapshot": review.published} if review.published else shown


def _places(root: Root, snapshot_id: str) -> dict[str, Any]:
    """Return the path of a snapshot's file, which names its tables, and its address in a shared store."""
    import dagster as dg

    path = root.snapshots.path_of(snapshot_id).resolve()
    shown: dict[str, Any] = {"file of the snapshot": dg.MetadataValue.path(str(path))}
    if root.shared:
        address = f"{root.shared.shown_url}/{manifest_name(snapshot_id)}"
        shown["file of the snapshot in the shared store"] = dg.MetadataValue.text(address)
    return shown


def _of_changes(root: Root, before: Snapshot, snapshot: Snapshot) -> dict[str, Any]:
    """Return the documents that were added, edited and removed, their counts, which plot over time, and all changes."""
    import dagster as dg

    from graphrag_pipeline.defs.assets.pages.metadata import of_lines

    diff = diff_snapshots(before, snapshot)
    counts = {f"documents {kind}": sum(item.change == kind for item in diff.documents) for kind in _CHANGES}
    rows = [(item.change, item.path, item.record) for item in diff.documents]
    table = _first_rows(("change", "path", "record"), rows) if rows else "no document; settings or code changed"
    command = f"graphrag-pipeline --root {shlex.quote(str(root.path))} snapshots diff {before.id} {snapshot.id}"
    return {
        "published before": before.id,
        **counts,
        "documents changed": dg.MetadataValue.md(table),
        **of_lines(DIFFERENCE, render_diff(diff, _MAX_CHANGES)),
        "command that prints the difference": dg.MetadataValue.md(f"`{command}`"),
    }


def _list_documents(snapshot: Snapshot) -> str:
    rows = snapshot.table("documents").select(["path", "record", "title", "text_unit_ids"]).sort_by("path")
    first = ((*list(row.values())[:3], len(row["text_unit_ids"])) for row in rows.slice(0, _MAX_LISTED).to_pylist())
    return _first_rows(("path", "record", "title", "text units"), list(first), rows.num_rows)


def _first_rows(names: Sequence[str], rows: Sequence[Sequence[Any]], n_rows: int | None = None) -> str:
    """Return a markdown table of the first rows, and the number of further rows."""
    from graphrag_pipeline.defs.assets.pages.metadata import as_table

    n_more = (len(rows) if n_rows is None else n_rows) - _MAX_LISTED
    more = f"\n\nand {n_more:,} more" if n_more > 0 else ""
    return as_table(names, rows[:_MAX_LISTED]) + more


def link_snapshot(instance: DagsterInstance, root: Root, snapshot_id: str, name: str = _RUN) -> dict[str, Any]:
    """Return a link to the run that published a snapshot; nothing if Dagster does not know it.

    Args:
        name: of the link.
    """
    import dagster as dg

    record = _find_publication(instance, root, snapshot_id)
    if record is None or record.asset_materialization is None:
        return {}
    known = record.asset_materialization.metadata.get(_RUN)
    return {name: known or dg.MetadataValue.dagster_run(record.run_id)}


def link_difference(instance: DagsterInstance, root: Root, snapshot_id: str) -> dict[str, Any]:
    """Return what a snapshot changed, with links to its run and its asset; only what Dagster knows."""
    import dagster as dg

    record = _find_publication(instance, root, snapshot_id)
    event = record.asset_materialization if record else None
    difference = event.metadata.get(DIFFERENCE) if event else None
    return {
        **({DIFFERENCE: difference} if difference else {}),
        **link_snapshot(instance, root, snapshot_id),
        "asset of the snapshot": dg.MetadataValue.asset(asset_key(root, SNAPSHOT.name)),
    }


def _find_publication(instance: DagsterInstance, root: Root, snapshot_id: str) -> EventLogRecord | None:
    """Return the last event of a run that published a snapshot, or that found it published and shows the same."""
    for record in instance.fetch_materializations(asset_key(root, SNAPSHOT.name), limit=_MAX_SEARCHED).records:
        event = record.asset_materialization
        if event and record.run_id and (event.tags or {}).get("dagster/data_version") == snapshot_id:
            return record
    return None


def with_publication(instance: DagsterInstance, run: DagsterRun, root: Root, shown: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a run of `index_snapshot`, with who published the snapshot and what that changed.

    Args:
        shown: metadata of the run; it has the difference if the run published the snapshot.
    """
    import dagster as dg

    if DIFFERENCE not in shown:
        return of_publication(instance, root, root.snapshots.current() or "") | shown
    before = shown.get("published before")
    return {
        "snapshot": shown["snapshot"],
        _PUBLISHER: _name_publisher(instance, run),
        _RUN: dg.MetadataValue.dagster_run(run.run_id),
        **(link_snapshot(instance, root, before, f"{_RUN} before") if before else {}),
        **({} if "model calls" in shown else _cost_of_run(root, run)),
        DIFFERENCE: shown[DIFFERENCE],
        **shown,
    }


def _cost_of_run(root: Root, run: DagsterRun) -> dict[str, Any]:
    """Return the model calls of a run that Dagster started; an index run counts its own."""
    from graphrag_pipeline.defs.assets.pages.metadata import COST
    from graphrag_pipeline.inspection.index_reports import report_ledger

    paid = [one for one in report_ledger(root).runs if one.about == run.run_id]
    shown: dict[str, Any] = {"model calls": sum(one.n_calls for one in paid)}
    return shown if any(one.n_unpriced for one in paid) else shown | {COST: sum((one.cost for one in paid), 0.0)}


def of_publication(instance: DagsterInstance, root: Root, snapshot_id: str) -> dict[str, Any]:
    """Return what the publication of a snapshot showed; without an event of it, what its files show.

    Raises:
        NoSnapshotError: the snapshot was removed.
    """
    root.snapshots.manifest(snapshot_id)
    record = _find_publication(instance, root, snapshot_id)
    event = record.asset_materialization if record else None
    if event and DIFFERENCE in event.metadata:
        return {name: value for name, value in event.metadata.items() if name not in _OF_ONE_RUN}
    ids = root.snapshots.ids()
    earlier = ids[: ids.index(snapshot_id)] if snapshot_id in ids else []
    for other in filter(root.snapshots.is_checked, reversed(earlier)):
        with suppress(NoSnapshotError), closing(root.snapshots.open(other)) as before:
            return of_snapshot(root, snapshot_id, before)
    return of_snapshot(root, snapshot_id)


def _name_publisher(instance: DagsterInstance, run: DagsterRun) -> str:
    """Return the schedule, the sensor, the job or the user behind a run; the run of a job's assets is the job's."""
    job = instance.get_run_by_id(run.tags.get(STARTED_BY_TAG, ""))
    if job:
        return _name_publisher(instance, job)
    for kind in ("schedule", "sensor"):
        if name := run.tags.get(f"dagster/{kind}_name"):
            return f"{kind} {name}"
    if run.job_name != ASSET_JOB:
        return f"job {run.job_name}"
    if KIND_TAG not in run.tags:
        return run.tags.get("user", "a user of Dagster's UI")
    with suppress(OSError, KeyError):  # a container's user may have no name
        return f"{getpass.getuser()} with graphrag-pipeline"
    return "graphrag-pipeline"


def published_event(
    instance: DagsterInstance, root: Root, snapshot_id: str, description: str, tags: Mapping[str, str] | None = None
) -> AssetMaterialization:
    """Return a materialization of `index_snapshot` that no run made."""
    import dagster as dg

    try:
        shown = of_publication(instance, root, snapshot_id)
    except NoSnapshotError as error:
        shown = {"snapshot": snapshot_id, "problem": str(error)}
    return dg.AssetMaterialization(
        asset_key(root, SNAPSHOT.name),
        description=description,
        metadata=shown,
        tags={"dagster/data_version": snapshot_id, **(tags or {})},
    )
