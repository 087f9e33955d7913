"""Blocking asset checks on the candidate: one per check of `publishing/checks.py`.

They run between `index_candidate` and `index_snapshot`; a failing check stops the publication. The share of failed
records is checked at publication, where the run lists them.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import dagster as dg

from graphrag_pipeline.defs.assets.metadata import of_lines
from graphrag_pipeline.defs.assets.published import open_published
from graphrag_pipeline.defs.runs.errors import in_words
from graphrag_pipeline.defs.runs.names import ALLOW_REMOVAL_TAG
from graphrag_pipeline.defs.runs.naming import asset_key, full_name
from graphrag_pipeline.defs.runs.resources import IndexRoot
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import CANDIDATE
from graphrag_pipeline.publishing.checks import CHECKS, POLICY_CHECKS
from graphrag_pipeline.publishing.removal import check_removal
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.text.safe_output import neutralize_markdown

RunCheck = Callable[[str, Root, Snapshot], list[str]]
"""Runs the check of a name; returns problems in words."""

_MIXED_PROMPTS = "mixed_prompts"
_REMOVED_DOCUMENTS = "removed_documents"
_MAX_LISTED = 20
_MAX_IN_LINE = 3  # in the line beside the check in the UI


def build_checks(root: Root) -> list[dg.AssetChecksDefinition]:
    """Return the checks of a root."""
    return [
        *(_build_check(root, name, check.__doc__ or "", _run_check) for name, check in CHECKS.items()),
        _build_check(root, _MIXED_PROMPTS, POLICY_CHECKS[_MIXED_PROMPTS].__doc__ or "", _run_policy_check),
        _build_removal_check(root),
    ]


def _run_check(name: str, _root: Root, snapshot: Snapshot) -> list[str]:
    return CHECKS[name](snapshot)


def _run_policy_check(name: str, root: Root, snapshot: Snapshot) -> list[str]:
    return POLICY_CHECKS[name](snapshot, root.settings.publishing)


def _describe(problems: list[str], snapshot: Snapshot) -> dict[str, Any]:
    """Return the number of problems, which plots over time, and the first of them."""
    shown = {"problems found": len(problems), "snapshot": snapshot.id}
    return shown | of_lines("problems found, each", problems[:_MAX_LISTED])


def _judge(name: str, is_good: bool, line: str, shown: Mapping[str, Any]) -> Iterator[dg.AssetCheckResult]:
    """Yield the result of a check; then fail its step with the same words, which Dagster shows on the run's page.

    Raises:
        ExplainedError: the check failed.
    """
    yield dg.AssetCheckResult(passed=is_good, description=neutralize_markdown(line) or None, metadata=shown)
    if not is_good:
        with in_words():
            raise PipelineError(f"check {name} of the candidate failed: {line}. The published snapshot stays")


def _spec(of: Root, name: str, description: str) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(name, asset=asset_key(of, CANDIDATE.name), description=description, blocking=True)


def _step_name(of: Root, name: str) -> str:
    return full_name(of, f"{CANDIDATE.name}_{name}")


def _build_check(of: Root, name: str, description: str, run: RunCheck) -> dg.AssetChecksDefinition:
    index_root = IndexRoot.of(of)

    @dg.multi_asset_check(name=_step_name(of, name), specs=[_spec(of, name, description)])
    def check() -> Iterator[dg.AssetCheckResult]:
        root = index_root.open()
        snapshot = root.snapshots.open(root.tables.need(CANDIDATE.name).data_version)
        problems = run(name, root, snapshot)
        yield from _judge(name, not problems, "; ".join(problems[:_MAX_IN_LINE]), _describe(problems, snapshot))

    return check


def _build_removal_check(of: Root) -> dg.AssetChecksDefinition:
    index_root = IndexRoot.of(of)

    @dg.multi_asset_check(
        name=_step_name(of, _REMOVED_DOCUMENTS), specs=[_spec(of, _REMOVED_DOCUMENTS, check_removal.__doc__ or "")]
    )
    def check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        root = index_root.open()
        snapshot = root.snapshots.open(root.tables.need(CANDIDATE.name).data_version)
        problems = check_removal(open_published(root), snapshot, root.settings.publishing)
        is_allowed = context.run.tags.get(ALLOW_REMOVAL_TAG) == "true"
        way_out = f"In the UI, launch the run with the tag {ALLOW_REMOVAL_TAG}: true"
        line = "; ".join([*problems, "the run allows it" if is_allowed else way_out]) if problems else ""
        yield from _judge(_REMOVED_DOCUMENTS, is_allowed or not problems, line, _describe(problems, snapshot))

    return check
