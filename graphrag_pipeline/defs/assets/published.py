"""Metadata and events of `index_snapshot` in the UI: the published snapshot, its rows and its changes.

Keep out: publishing, and the event that confirms the snapshot as up to date (`defs/index_runs/missing_events.py`).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.defs.runs.naming import asset_key
from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.inspection.snapshot_diff import diff_snapshots, render_diff
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import SNAPSHOT
from graphrag_pipeline.storage.shared.state import manifest_name
from graphrag_pipeline.storage.snapshot_store import describe_snapshot
from graphrag_pipeline.storage.snapshots import Snapshot

if TYPE_CHECKING:
    from dagster import AssetMaterialization, DagsterInstance, EventLogRecord

COUNTED = ("documents", "text_units", "entities", "relationships", "communities")
"""Contract tables whose rows show the size of an index."""

_SUBJECTS = {**{name: name.replace("_", " ") for name in COUNTED}, "covariates": "claims"}
"""Contract table -> its rows in the UI."""
_MAX_LISTED = 20
_MAX_SEARCHED = 100  # publications
_MAX_CHANGES = 200  # of a kind, in the difference: an event is a row of Dagster's database
DIFFERENCE = "difference to the snapshot before"
"""Name of what changed from one publication to the next, everywhere in the UI."""
_CHANGES = ("added", "edited", "removed")


def of_snapshot(root: Root, snapshot_id: str, before: Snapshot | None = None) -> dict[str, Any]:
    """Return metadata of a snapshot: row counts, creation time, its documents, and the changed ones.

    Args:
        before: the snapshot that was published before; None if it is unknown.

    Raises:
        NoSnapshotError: the snapshot was removed.
    """
    import dagster as dg

    facts = describe_snapshot(root.snapshots, snapshot_id)
    counts = {_SUBJECTS[name]: facts.rows[name] for name in _SUBJECTS if facts.rows.get(name)}
    made = dg.MetadataValue.timestamp(datetime.fromisoformat(facts.created))
    with closing(root.snapshots.open(snapshot_id)) as snapshot:
        changes = _of_changes(root, before, snapshot) if before and before.id != snapshot_id else {}
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


def link_snapshot(instance: DagsterInstance, root: Root, snapshot_id: str, name: str) -> dict[str, Any]:
    """Return a link to the run that published a snapshot; nothing if Dagster does not know it.

    Args:
        name: of the link.
    """
    import dagster as dg

    record = _find_publication(instance, root, snapshot_id)
    return {name: dg.MetadataValue.dagster_run(record.run_id)} if record else {}


def link_difference(instance: DagsterInstance, root: Root, snapshot_id: str) -> dict[str, Any]:
    """Return what a snapshot changed, with links to its run and its asset; only what Dagster knows."""
    import dagster as dg

    record = _find_publication(instance, root, snapshot_id)
    event = record.asset_materialization if record else None
    difference = event.metadata.get(DIFFERENCE) if event else None
    return {
        **({DIFFERENCE: difference} if difference else {}),
        **link_snapshot(instance, root, snapshot_id, "run that published the snapshot"),
        "asset of the snapshot": dg.MetadataValue.asset(asset_key(root, SNAPSHOT.name)),
    }


def _find_publication(instance: DagsterInstance, root: Root, snapshot_id: str) -> EventLogRecord | None:
    """Return the last event of a run that published a snapshot."""
    for record in instance.fetch_materializations(asset_key(root, SNAPSHOT.name), limit=_MAX_SEARCHED).records:
        event = record.asset_materialization
        if event and record.run_id and (event.tags or {}).get("dagster/data_version") == snapshot_id:
            return record
    return None


def open_published(root: Root) -> Snapshot | None:
    """Return the published snapshot; None if no whole snapshot is published."""
    try:
        return root.snapshots.open()
    except NoSnapshotError:
        return None


def published_event(
    root: Root, snapshot_id: str, description: str, tags: Mapping[str, str] | None = None
) -> AssetMaterialization:
    """Return a materialization of `index_snapshot` that no run made."""
    import dagster as dg

    try:
        shown = of_snapshot(root, snapshot_id)
    except NoSnapshotError as error:
        shown = {"snapshot": snapshot_id, "problem": str(error)}
    return dg.AssetMaterialization(
        asset_key(root, SNAPSHOT.name),
        description=description,
        metadata=shown,
        tags={"dagster/data_version": snapshot_id, **(tags or {})},
    )
