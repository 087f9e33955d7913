"""Work that an index leaves open: failed records, deferred reports, unused overrides, an unpublished candidate.

Only heads and files of the root are read. Keep out: what is stale (`staleness.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.indexing.graph.overrides import find_unused, read_overrides
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import CANDIDATE, STAGES
from graphrag_pipeline.settings.settings import OVERRIDES_FILE
from graphrag_pipeline.tables import MODEL_STAGES


@dataclass(frozen=True)
class ReportLag:
    """How many of all reports are deferred, and the largest share of new evidence in one of them."""

    n_reports: int
    n_deferred: int
    largest_new_share: float

    def to_dict(self) -> dict[str, float]:
        """Return the values by the keys of `status --json`."""
        values = {"n_reports": self.n_reports, "n_waiting": self.n_deferred}
        return {**values, "largest_new_share": self.largest_new_share}


def measure_lag(root: Root) -> ReportLag:
    """Count the reports that are deferred until more of their evidence is new (`reports.rewrite_share`)."""
    head = root.tables.head("community_reports", WHOLE)
    rows = root.tables.dataset([head]).to_table(columns=["new_share"]) if head else None
    shares = [share or 0.0 for share in rows["new_share"].to_pylist()] if rows else []  # null in rows of older releases
    return ReportLag(len(shares), sum(share > 0 for share in shares), max(shares, default=0.0))


def list_failures(root: Root) -> list[dict[str, str]]:
    """Return the records without a usable model reply: stage, partition and the columns of its failures table."""
    failures = []
    for name in MODEL_STAGES:
        for partition in STAGES[name].partitions(root.settings):
            head = root.tables.head(f"{name}_failures", partition)
            rows = root.tables.read_head(head).to_pylist() if head and head.n_rows else []
            failures += [{"stage": name, "partition": partition, **row} for row in rows]
    return failures


def list_unused_overrides(root: Root) -> list[str]:
    """Return rows of entity_overrides.csv that name no entity of the graph, or why the file cannot be read."""
    try:
        overrides = read_overrides(root.read_file(OVERRIDES_FILE))
    except PipelineError as error:
        return str(error).split("\n")
    head = root.tables.head("entities") if overrides.num_rows else None
    return find_unused(overrides, root.tables.read_head(head)) if head else []


def find_unpublished_candidate(root: Root) -> str | None:
    """Return the candidate that `snapshots unpin` and `index` would publish; None without one."""
    candidate = root.tables.head(CANDIDATE.name)
    if root.snapshots.pinned() is None or candidate is None or candidate.data_version == root.snapshots.current():
        return None
    return candidate.data_version
