"""Blocking asset checks on the candidate: one per check of `publishing/checks.py`.

They run between `index_candidate` and `index_snapshot`; a failing one stops the publication. How many records may have
failed is asked when the snapshot is published, where the run says which.
"""

from collections.abc import Callable

import dagster as dg

from graphrag_pipeline.defs.runs.resources import IndexRoot
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import CANDIDATE
from graphrag_pipeline.publishing.checks import CHECKS, POLICY_CHECKS
from graphrag_pipeline.storage.snapshots import Snapshot

Ask = Callable[[str, Root, Snapshot], list[str]]
"""Runs the check of a name; problems in words."""

_MIXED_PROMPTS = "mixed_prompts"
_MAX_LISTED = 20
_MAX_TOLD = 3  # in the one line that stands beside the check


def build_checks() -> list[dg.AssetChecksDefinition]:
    return [
        *(_build_check(name, check.__doc__ or "", _ask) for name, check in CHECKS.items()),
        _build_check(_MIXED_PROMPTS, POLICY_CHECKS[_MIXED_PROMPTS].__doc__ or "", _ask_policy),
    ]


def _ask(name: str, _root: Root, snapshot: Snapshot) -> list[str]:
    return CHECKS[name](snapshot)


def _ask_policy(name: str, root: Root, snapshot: Snapshot) -> list[str]:
    return POLICY_CHECKS[name](snapshot, root.settings.publishing)


def _build_check(name: str, description: str, ask: Ask) -> dg.AssetChecksDefinition:
    @dg.asset_check(asset=CANDIDATE.name, name=name, description=description, blocking=True)
    def check(index_root: IndexRoot) -> dg.AssetCheckResult:
        root = index_root.open()
        snapshot = root.snapshots.open(root.tables.need(CANDIDATE.name).data_version)
        problems = ask(name, root, snapshot)
        return dg.AssetCheckResult(
            passed=not problems,
            description="; ".join(problems[:_MAX_TOLD]) or None,
            metadata={"problems": problems[:_MAX_LISTED], "snapshot": snapshot.id},
        )

    return check
