"""Blocking asset checks on the candidate: one per check of `storage/checks.py`.

They run between `index_candidate` and `index_snapshot`; a failing one stops the publication.
"""

import dagster as dg

from graphrag_pipeline.defs.resources import IndexRoot
from graphrag_pipeline.stages import CANDIDATE
from graphrag_pipeline.storage.checks import CHECKS


def build_checks() -> list[dg.AssetChecksDefinition]:
    return [_build_check(name, CHECKS[name].__doc__ or "") for name in CHECKS]


def _build_check(name: str, description: str) -> dg.AssetChecksDefinition:
    @dg.asset_check(asset=CANDIDATE.name, name=name, description=description, blocking=True)
    def check(index_root: IndexRoot) -> dg.AssetCheckResult:
        return _run_check(index_root, name)

    return check


def _run_check(index_root: IndexRoot, name: str) -> dg.AssetCheckResult:
    root = index_root.open()
    snapshot = root.snapshots.open(root.tables.need(CANDIDATE.name).data_version)
    problems = CHECKS[name](snapshot)
    return dg.AssetCheckResult(passed=not problems, metadata={"problems": problems[:20], "snapshot": snapshot.id})
