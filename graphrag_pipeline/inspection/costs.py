"""What runs cost, beside what they were estimated to: one JSON object per run in `cache/costs.jsonl`.

It is a log, not a table: it has times, and nothing is computed from it. Keep out: how an estimate is made.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from graphrag_pipeline.inspection.estimates import StageEstimate
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.root import Root
from graphrag_pipeline.storage import files

_FILE = "costs.jsonl"
_WHAT_IS_SPENT = (
    "the budget's `spent so far` is more: calls without an answer count there as paid, and so does what has no line "
    "here (a run that was killed or came from Dagster's UI, questions)"
)


def append_costs(root: Root, estimates: Iterable[StageEstimate], actual: Mapping[str, CallStats]) -> None:
    """Add a run, if it asked a model or was to ask one."""
    estimated = {estimate.stage: asdict(estimate) for estimate in estimates}
    paid = {stage: stats.as_metadata() for stage, stats in actual.items() if stats.n_calls or stats.n_cached}
    if not estimated and not paid:
        return
    stages = {stage: {"estimated": estimated.get(stage), "actual": paid.get(stage)} for stage in (estimated | paid)}
    run = {"ended": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "stages": stages}
    path = root.cache_folder / _FILE
    known = path.read_bytes() if path.exists() else b""
    files.replace(path, known + json.dumps(run, sort_keys=True).encode() + b"\n")


def read_costs(root: Root) -> list[dict[str, Any]]:
    """All runs, the first one first; a line cut short by a power cut is left out."""
    path = root.cache_folder / _FILE
    runs = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            runs.append(json.loads(line))
        except ValueError:
            continue
    return runs


def render_estimates(estimates: Sequence[StageEstimate]) -> list[str]:
    """A table in lines; the last one is the total."""
    if not estimates:
        return ["no calls of models: nothing that asks one is stale"]
    lines = [f"{'stage':26}{'calls':>9}{'cached':>9}{'prompt tokens':>15}{'reply tokens':>14}{'USD':>10}"]
    for estimate in estimates:
        mark = "~" if estimate.is_scaled else " "
        lines.append(
            f"{estimate.stage:26}{mark + format(estimate.n_calls, ','):>9}{estimate.n_cached:>9,}"
            f"{estimate.prompt_tokens:>15,}{estimate.completion_tokens:>14,}{_money(estimate.cost):>10}"
        )
    costs = [estimate.cost for estimate in estimates]
    total = None if None in costs else sum(cost or 0.0 for cost in costs)
    lines.append(
        f"{'total':26}{sum(e.n_calls for e in estimates):>9,}{sum(e.n_cached for e in estimates):>9,}"
        f"{sum(e.prompt_tokens for e in estimates):>15,}{sum(e.completion_tokens for e in estimates):>14,}"
        f"{_money(total):>10}"
    )
    if any(estimate.is_scaled for estimate in estimates):
        lines.append(
            "~ a guess from the number of text units; dense texts, or a model that finds much, need several times it"
        )
    return lines


def _money(cost: float | None) -> str:
    return "?" if cost is None else f"{cost:.4f}"


def _paid(actual: Mapping[str, Any]) -> str:
    """What calls cost; a ? for those whose price is not known."""
    cost, n_unpriced = actual.get("cost_usd", 0.0), actual.get("unpriced_calls", 0)
    if not n_unpriced:
        return _money(cost)
    return f"{_money(cost)} + ?" if cost else "?"


def render_costs(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Calls, tokens and money of every run, estimated -> actual, in lines."""
    lines = []
    for run in runs:
        lines.append(run["ended"])
        for stage, figures in run["stages"].items():
            estimated, actual = figures["estimated"] or {}, figures["actual"] or {}
            tokens = estimated.get("prompt_tokens", 0) + estimated.get("completion_tokens", 0)
            spent = actual.get("prompt_tokens", 0) + actual.get("completion_tokens", 0)
            lines.append(
                f"  {stage:26} calls {estimated.get('n_calls', 0):,} -> {actual.get('calls', 0):,}, "
                f"tokens {tokens:,} -> {spent:,}, USD {_money(estimated.get('cost', 0.0))} -> "
                f"{_paid(actual)}"
            )
    return [*lines, _WHAT_IS_SPENT] if lines else ["no run asked a model yet"]
