"""Refusals of a run before its first paid call: buckets of different prompts, and an estimate above the budget.

A paid run that could not be published, or not be finished, would waste its cost. The check of the candidate and the
ceiling of the budget stay. Keep out: how calls are estimated (`estimates.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.spending import BudgetExceededError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.publishing.checks import find_mixed

if TYPE_CHECKING:
    from graphrag_pipeline.inspection.stage_estimates import StageEstimate


class MixedPromptsError(PipelineError):
    """Buckets come from different prompts, models or settings; a retry fails again."""


def refuse_mixed_buckets(root: Root) -> None:
    """Refuse to pay for stages of the whole corpus while buckets come from different prompts, models or settings.

    Raises:
        MixedPromptsError: they do, and `publishing.allow_mixed_prompts` is off.
    """
    if root.settings.publishing.allow_mixed_prompts:
        return
    stages = [stage for stage in STAGES.values() if stage.is_partitioned]
    keys = [(table, key) for stage in stages for table in stage.tables for key in stage.partitions(root.settings)]
    heads = {f"{table}/{key}": head for table, key in keys if (head := root.tables.head(table, key))}
    versions = {name: {"code_version": head.code_version} for name, head in heads.items()}
    if mixed := find_mixed(versions, {head.code_version: head.code for head in heads.values()}):
        raise MixedPromptsError(f"{mixed[0]}. No call was made, because such an index is not published")


def refuse_over_budget(root: Root, estimates: Iterable[StageEstimate]) -> None:
    """Refuse calls whose estimate is above what is left of the budget; of a range, its least counts.

    Raises:
        BudgetExceededError: they do not fit, and `budget.check_estimate` is on.
    """
    spending = root.models.spending
    if not spending.has_ceiling:
        return
    tokens, cost = 0, 0.0
    for estimate in estimates:
        share = estimate.call_range[0] / estimate.n_calls if estimate.n_calls else 0.0
        tokens += round(share * (estimate.prompt_tokens + estimate.completion_tokens))
        cost += share * (estimate.cost or 0.0)
    if problem := spending.explain_excess(tokens, cost):
        raise BudgetExceededError(problem)
