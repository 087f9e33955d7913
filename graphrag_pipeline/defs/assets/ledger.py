"""The asset `costs`: what models cost so far, from the ledger of paid calls. Its numbers plot over time.

An event is recorded when the ledger changed: after an index run, a run of assets or a question in Dagster, and when
something else looks at the index, such as an observation. So it also shows what commands paid. It is an external asset:
no job materializes it. Keep out: reading the ledger (`inspection/index_reports.py`).
"""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from graphrag_pipeline.defs.assets.pages.metadata import COST, as_table, plot_bars
from graphrag_pipeline.defs.runs.naming import asset_key, group_of
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.inspection.index_reports import (
    GROUPS,
    LedgerReport,
    PaidCalls,
    describe_budget,
    name_run,
    report_ledger,
    say_command,
)
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import SNAPSHOT

COSTS = "costs"
_LEDGER_TAG = "graphrag/ledger"
_MAX_RUNS = 20
_MAX_DAYS = 30


def build_costs_asset(root: Root) -> dg.AssetSpec:
    """Build the asset of a root."""
    return dg.AssetSpec(
        asset_key(root, COSTS),
        group_name=group_of(root, SNAPSHOT.group),
        description="What models cost so far, by run, day, stage, model and command, as `costs` lists it.",
        kinds={"markdown"},
    )


def report_costs(instance: dg.DagsterInstance, root: Root) -> bool:
    """Record an event if the ledger differs from the last one; return whether it did. A root without calls has none."""
    key, report = asset_key(root, COSTS), report_ledger(root, "stage")
    if not report.runs:
        return False
    version = stable_hash(*map(repr, report.runs), str(report.max_cost), str(report.max_tokens))
    last = instance.get_latest_materialization_event(key)
    if last and last.asset_materialization and (last.asset_materialization.tags or {}).get(_LEDGER_TAG) == version:
        return False
    budget = describe_budget(report.spent_tokens, report.spent_cost, report.max_tokens, report.max_cost)
    event = dg.AssetMaterialization(
        key, description=budget, metadata=_describe(root, report), tags={_LEDGER_TAG: version}
    )
    instance.report_runless_asset_event(event)
    return True


def _describe(root: Root, report: LedgerReport) -> dict[str, Any]:
    days = report_ledger(root, "day").groups[-_MAX_DAYS:]
    bars = [(day.name, round(day.cost, 4)) for day in days]
    return {
        **_numbers(report),
        "last paid runs": _runs(report.runs),
        "plot of model cost by day": plot_bars("model cost by day (USD)", bars),
        **{f"model cost by {group}": _sums(report_ledger(root, group).groups, group) for group in GROUPS},
        **{f"model cost of {one.name} so far (USD)": round(one.cost, 6) for one in report.groups if one.name},
    }


def _numbers(report: LedgerReport) -> dict[str, int | float]:
    total = report.total
    shown: dict[str, int | float] = {
        "model cost so far (USD)": round(report.spent_cost, 6),
        "paid runs so far": len(report.runs),
        "model calls so far": total.n_calls,
        "model calls without a price so far": total.n_unpriced,
        "tokens sent to models so far": total.prompt_tokens,
        "tokens received from models so far": total.completion_tokens,
    }
    if report.max_cost is not None:
        shown["left of the budget (USD)"] = round(max(0.0, report.max_cost - report.spent_cost), 6)
    if report.max_tokens is not None:
        shown["left of the budget (tokens)"] = max(0, report.max_tokens - report.spent_tokens)
    return shown


_RUN_DIGITS = 8
_TO_MINUTE = len("2026-01-01T00:00")
_FIGURES = (COST, "calls", "tokens sent", "tokens received")


def _figures(one: PaidCalls) -> tuple[str, int, int, int]:
    return _cost(one), one.n_calls, one.prompt_tokens, one.completion_tokens


def _cost(one: PaidCalls) -> str:
    unpriced = f"no price for {one.n_unpriced:,} calls" if one.n_unpriced else ""
    return "; ".join(filter(None, [f"{one.cost:.4f}" if one.cost or not unpriced else "", unpriced]))


def _sums(groups: Sequence[PaidCalls], name: str) -> dg.MarkdownMetadataValue:
    rows = [(one.name or "not known", *_figures(one)) for one in groups]
    return dg.MetadataValue.md(as_table((name, *_FIGURES), rows))


def _runs(runs: Sequence[PaidCalls]) -> dg.MarkdownMetadataValue:
    """Return the newest runs, each with as many digits of its id as Dagster's page of runs shows; `costs` lists all."""
    rows = [
        (
            one.begun[:_TO_MINUTE].replace("T", " "),
            say_command(one),
            one.status,
            *_figures(one),
            name_run(one)[:_RUN_DIGITS],
        )
        for one in reversed(runs[-_MAX_RUNS:])
    ]
    return dg.MetadataValue.md(as_table(("begun (UTC)", "command", "status", *_FIGURES, "run"), rows))
