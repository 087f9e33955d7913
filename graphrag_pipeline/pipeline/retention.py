"""Retention of a root: removing old snapshots and files that no head and no snapshot names.

Keep out: finding unnamed files (`storage/garbage.py`), and documents that must leave no trace (`forgetting.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.inputs.files import list_unused_records
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.storage.garbage import SweepReport, check_readable, find_old_snapshots, sweep
from graphrag_pipeline.storage.locks import one_index_run, one_writer
from graphrag_pipeline.text.counted import counted


def prune(root: Root, n_kept: int, before: float, is_dry_run: bool = False) -> SweepReport:
    """Remove old snapshots, and the files that no head and no snapshot names any more.

    Args:
        n_kept: number of newest snapshots that stay in any case.
        before: seconds since 1970; younger snapshots and files stay.
        is_dry_run: only report what would be removed.
    """
    with one_index_run(root.path), root.writing(), one_writer(root.path):
        check_readable(root.tables, root.snapshots)
        old = find_old_snapshots(root.tables, root.snapshots, n_kept, before)
        return sweep_root(root, old, before, is_dry_run)


def sweep_root(root: Root, doomed: Sequence[str], before: float, is_dry_run: bool = False) -> SweepReport:
    """Sweep a root and its shared store (`garbage.sweep`); the caller is the only writer of both.

    The store's state stops listing the snapshots first, then the root loses their files, then the store. A process of
    this root that follows the store waits until the root is swept, so that it cannot fetch a manifest back. A kill at
    any moment leaves no listed snapshot without its objects.
    """
    others = unused_records(root)
    if root.shared is None:
        return sweep(root.tables, root.snapshots, doomed, before, others, is_dry_run)
    with root.shared.alone():
        swept = sweep(root.tables, root.snapshots, doomed, before, others, is_dry_run, root.shared.unlist)
    return replace(swept, objects=tuple(root.shared.remove_unnamed(swept.snapshots if is_dry_run else (), is_dry_run)))


def unused_records(root: Root) -> list[Path]:
    """Return parsed or converted files in the cache whose source the input folder no longer has."""
    if root.shares_cache:  # another root may use them
        return []
    try:
        return list_unused_records(root.input_folder, root.settings.input, root.cache_folder)
    except PipelineError:  # the input folder is missing, perhaps only for a while: keep the cache
        return []


def render_sweep(swept: SweepReport, is_dry_run: bool) -> list[str]:
    """Return what a sweep removed and kept, in lines."""
    verb = "would remove" if is_dry_run else "removed"
    lines = [f"{verb} snapshot {snapshot_id}" for snapshot_id in swept.snapshots]
    lines += [f"kept snapshot {snapshot_id}: a process has it open" for snapshot_id in swept.held]
    lines += [f"{verb} {path}" for path in swept.paths]
    lines += [f"{verb} vectors {name}" for name in swept.collections]
    lines += [f"{verb} {name} of the shared store" for name in swept.objects]
    snapshots, files = counted(len(swept.snapshots), "snapshots"), len(swept.paths) + len(swept.collections)
    return [*lines, f"{verb} {snapshots} and {counted(files, 'files')}, {swept.n_bytes:,} bytes"]
