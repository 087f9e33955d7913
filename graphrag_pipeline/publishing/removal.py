"""The guard against publications that lose many documents, perhaps only because a disk or store is not complete now.

Keep out: documents that one file loses (`inputs/files.py`).
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.settings.settings import PublishingSettings
from graphrag_pipeline.storage.snapshots import Snapshot

_MIN_REMOVED = 5
"""Fewer documents may always go, so that small corpora can be edited."""


def find_removal_problem(published: pa.Table, kept_ids: Collection[str], settings: PublishingSettings) -> str:
    """Return why a publication waits that loses too many of the published documents; "" if it need not.

    Args:
        published: documents of the published snapshot; needs `id` and `path`.
        kept_ids: ids of the documents after the publication, and of those that are there under another path.
    """
    is_lost = pc.invert(pc.is_in(published["id"], value_set=pa.array(kept_ids, pa.string())))
    n_lost, n_published = pc.sum(is_lost).as_py() or 0, published.num_rows
    if n_lost < _MIN_REMOVED or n_lost <= settings.max_removed_share * n_published:
        return ""
    first = min(published["path"].filter(is_lost).to_pylist())
    return (
        f"{n_lost:,} of {n_published:,} published documents are gone, such as `{first}`: more than "
        f"publishing.max_removed_share = {settings.max_removed_share:g}. If they are to go, run "
        "`graphrag-pipeline index --allow-removal`; else restore them, then run `graphrag-pipeline index`"
    )


def check_removal(published: Snapshot | None, candidate: Snapshot, settings: PublishingSettings) -> list[str]:
    """No more than `publishing.max_removed_share` of the published documents are gone, or fewer than 5."""
    if published is None:
        return []
    before, after = published.table("documents"), candidate.table("documents")
    is_there = pc.is_in(before["text"], value_set=after["text"])  # a file that moved has another id
    kept = [*after["id"].to_pylist(), *before["id"].filter(is_there).to_pylist()]
    problem = find_removal_problem(before, kept, settings)
    return [problem] if problem else []
