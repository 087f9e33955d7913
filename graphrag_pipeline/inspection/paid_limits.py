"""Refusals of a run before its first paid call: buckets of different prompts, and an estimate above the budget.

A paid run that could not be published, or not be finished, would waste its cost. The check of the candidate and the
ceiling of the budget stay. Keep out: how calls are estimated (`estimates.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import TYPE_CHECKING

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.spending import BudgetExceededError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES, Stage
from graphrag_pipeline.publishing.checks import find_mixed
from graphrag_pipeline.storage.table_store import code_version_of

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


def explain_mixture(root: Root, stage: Stage, chosen: Iterable[str]) -> str:
    """Return a warning if other buckets come from other prompts, models or settings than some will now, else "".

    A run of some buckets is paid all the same: bucket after bucket is a way to bring all of them up to date.
    """
    others = [key for key in stage.partitions(root.settings) if key not in set(chosen)]
    now = code_version_of(root.code_of(stage))
    heads = {key: root.tables.head(table, key) for table in stage.tables for key in others}
    old = sorted(key for key, head in heads.items() if head and head.code_version != now)
    if not old or root.settings.publishing.allow_mixed_prompts:
        return ""
    return (
        f"{stage.name}: {len(old):,} other buckets ({' '.join(old)}) come from other prompts, models or settings. What "
        "this run pays for cannot be published before they are materialized, too; `reindex_stale` does all of them"
    )


def refuse_over_budget(root: Root, estimates: Iterable[StageEstimate]) -> None:
    """Refuse calls whose estimate is above what is left of the budget; of a range, its least counts.

    The limit that the error advises is enough for the most of the range.

    Raises:
        BudgetExceededError: they do not fit, and `budget.check_estimate` is on.
    """
    spending = root.models.spending
    if not spending.has_ceiling:
        return
    made = list(estimates)
    (tokens, cost), (most_tokens, most_cost) = (_sum_end(made, end) for end in (0, 1))
    most_cost += sum(estimate.most_cost or 0.0 for estimate in made)
    if problem := spending.explain_excess(tokens, cost, most_tokens, most_cost):
        raise BudgetExceededError(problem)


def _sum_end(estimates: Iterable[StageEstimate], end: int) -> tuple[int, float]:
    """Return the tokens and US dollars of the least (0) or the most calls (1) of estimates."""
    tokens, cost = 0, 0.0
    for estimate in estimates:
        share = estimate.call_range[end] / max(1, estimate.n_calls)
        tokens += ceil(share * (estimate.prompt_tokens + estimate.completion_tokens))
        cost += share * (estimate.cost or 0.0)
    return tokens, cost
