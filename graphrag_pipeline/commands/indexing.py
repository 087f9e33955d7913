"""Commands that make and maintain an index: `index`, `costs` and `merges`; it mounts `status` between them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.commands.completion import complete_choice
from graphrag_pipeline.commands.snapshots import render_pin
from graphrag_pipeline.commands.state import render_lag, status
from graphrag_pipeline.commands.terminal import (
    INDEX_GROUP,
    READ_GROUP,
    JsonOption,
    RootOption,
    echo,
    logging_costs,
    open_root,
    print_json,
)
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.text.counted import counted

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.root import Root


COST_GROUPS = ("day", "model", "stage", "command")
"""Sums that `costs --by` gives."""


def add_indexing_commands(app: typer.Typer) -> None:
    """Mount the commands of this module."""
    for command in (index, status, costs):
        app.command(rich_help_panel=INDEX_GROUP)(command)
    app.command(rich_help_panel=READ_GROUP)(merges)


def index(
    root: RootOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only estimate model calls, tokens and cost per stage.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; with `--dry-run`, the estimate.")] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Publish an empty index if the input folder has no documents.")
    ] = False,
    allow_removal: Annotated[
        bool,
        typer.Option(
            "--allow-removal",
            help="Publish although many documents are gone (publishing.max_removed_share), or let the first run of a "
            "new copy remove documents from a shared index.",
        ),
    ] = False,
    recluster: Annotated[
        bool, typer.Option("--recluster", help="Cluster communities from scratch, ignoring the published ones.")
    ] = False,
) -> None:
    """Index changed documents and stale stages, check the result and publish it."""
    # Before numpy is imported: a second thread for small matrix products waits in a loop, 6 % of the processor time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from dataclasses import asdict

    from graphrag_pipeline.defs.index_runs.index_run import run_index
    from graphrag_pipeline.inspection.costs import list_last_problems
    from graphrag_pipeline.pipeline.open_work import (
        count_failures,
        list_unread_prompts,
        list_unused_overrides,
        measure_lag,
    )
    from graphrag_pipeline.pipeline.progress import IndexProgress

    project = open_root(root)
    if dry_run:
        project.pull()
        _print_estimates(project, as_json, ["communities"] if recluster else [])
        return
    account = CallStats()
    try:
        with _reporting_failed(project, account), IndexProgress() as progress:
            accounted = project.counted_in(account)
            report = run_index(accounted, progress, allow_empty, is_reclustering=recluster, allow_removal=allow_removal)
    except KeyboardInterrupt:
        echo("interrupted: finished work is kept; run `graphrag-pipeline index` again to continue", err=True)
        raise typer.Exit(130) from None
    for path, problem in report.problems:
        echo(f"not read: {path}: {problem}", err=True)
    for path, note in report.notes:
        echo(f"note: {path}: {note}", err=True)
    for found in report.repairs:
        echo(f"was damaged: {found.path}: {found.outcome}", err=True)
    for line in [*list_unused_overrides(project), *list_unread_prompts(project)]:
        echo(line, err=True)
    counts = _count_rows(project, report.waiting or report.snapshot)
    failed = count_failures(project)
    left_out = list_last_problems(project) if account.n_calls or account.n_cached else []
    if as_json:
        values = {"pinned": project.snapshots.pinned(), "rows": counts, "failed_records": failed, "replies": left_out}
        print_json({**asdict(report), **values, "paid": account.as_metadata()})
        return
    rows = ", ".join(counted(n_rows, name.replace("_", " ")) for name, n_rows in counts.items())
    echo(f"{counted(report.n_documents, 'documents')}: {rows if report.ran else 'nothing changed'}")
    echo(f"published snapshot {report.snapshot}")
    if failed:
        shown = ", ".join(f"{n:,} of {stage}" for stage, n in failed.items())
        echo(f"records without a usable reply: {shown}; `graphrag-pipeline status` shows the reasons", err=True)
    for line in left_out:
        echo(f"left out or repaired in {line}", err=True)
    for line in render_lag(measure_lag(project).to_dict()):
        echo(line)
    for line in [*render_pin(project.snapshots.pinned(), report.waiting), *_paid_lines(project, account)]:
        echo(line)


@contextmanager
def _reporting_failed(project: Root, account: CallStats) -> Iterator[None]:
    """Print what a run paid that fails or is interrupted."""
    try:
        yield
    except BaseException:
        for line in _paid_lines(project, account) if account.n_calls or account.n_unanswered else []:
            echo(line, err=True)
        raise


def _paid_lines(project: Root, account: CallStats) -> list[str]:
    """Return what a run paid, and what is left of the budget; nothing if no step asks a model."""
    from graphrag_pipeline.pipeline.stage_code import asks_any_model

    if not asks_any_model(project.settings):
        return []
    from graphrag_pipeline.inspection.ledger_report import describe_spending, find_unpriced

    costs = [f"{account.cost:.4f} USD"] if account.cost or not account.n_unpriced else []
    if account.n_unpriced:
        costs.append(f"no price set for {', '.join(find_unpriced(project))}")
    tokens = account.prompt_tokens + account.completion_tokens
    paid = f"paid by this run: {counted(account.n_calls, 'calls')}, {tokens:,} tokens, {'; '.join(costs)}"
    return [paid, *_unanswered(account), describe_spending(project.models.spending)]


def _unanswered(account: CallStats) -> list[str]:
    """Return what `spent` counts besides the answered calls of a run."""
    if not account.n_unanswered:
        return []
    return [
        f"requests without a usable answer, such as after a time-out: {account.n_unanswered:,}, "
        f"{account.unanswered_tokens:,} tokens, {account.unanswered_cost:.4f} USD; the model may have charged their "
        "prompts, so `spent` counts them, too"
    ]


def _count_rows(project: Root, snapshot_id: str) -> dict[str, int]:
    """Return the rows of a snapshot's main tables, without documents, which are reported separately."""
    from graphrag_pipeline.defs.assets.published import COUNTED

    manifest = project.snapshots.manifest(snapshot_id)
    return {name: manifest.tables[name]["n_rows"] for name in COUNTED if name != "documents"}


def _print_estimates(project: Any, as_json: bool, reclustered: list[str]) -> None:
    from dataclasses import asdict

    from graphrag_pipeline.inspection.costs import render_estimates
    from graphrag_pipeline.inspection.estimates import estimate_index
    from graphrag_pipeline.pipeline.detected_input import detect_input
    from graphrag_pipeline.pipeline.stage_code import asks_any_model
    from graphrag_pipeline.pipeline.staleness import find_stale

    if problem := project.tables.find_layout_problem(project.settings.storage.n_buckets):
        raise PipelineError(problem)
    stale = find_stale(project, detect_input(project), reclustered)
    estimates = estimate_index(project, stale)
    spent = project.models.spending if asks_any_model(project.settings) else None
    if as_json:
        budget = spent.describe() if spent else None
        print_json(
            {"stale": [asdict(item) for item in stale], "estimates": [asdict(e) for e in estimates], "budget": budget}
        )
        return
    echo(f"{len(stale):,} partitions of stages would run")
    for line in render_estimates(estimates):
        echo(line)
    if spent:
        echo(spent.describe())


def merges(
    root: RootOption = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Show the merges that the present settings would make. Nothing is written, no chat model is called. "
            "Vectors that are not stored yet are requested from the embedding model, which may cost money.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List which names were merged into one entity, and why."""
    from dataclasses import asdict

    from graphrag_pipeline.inspection.merge_report import list_merges, preview_merges, render_report

    project = open_root(root)
    project.pull()
    with logging_costs(project, "merges", "resolution") as accounted:
        report = preview_merges(accounted) if dry_run else list_merges(accounted)
    if as_json:
        print_json(asdict(report))
        return
    for line in render_report(report):
        echo(line)


def costs(
    by: Annotated[
        str | None,
        typer.Option(help="Sums by day, model, stage or command.", autocompletion=complete_choice(*COST_GROUPS)),
    ] = None,
    has_estimates: Annotated[
        bool, typer.Option("--estimates", help="Compare the estimate of each `index` with what it paid, by stage.")
    ] = False,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """List every run that paid a model, with totals, what is spent and the ceiling.

    Commands, runs in Dagster and processes that use Python are listed, also those that failed or were killed.
    """
    from dataclasses import asdict

    from graphrag_pipeline.inspection.costs import read_costs, render_costs
    from graphrag_pipeline.inspection.ledger_report import render_ledger, report_ledger

    if by is not None and by not in COST_GROUPS:
        raise typer.BadParameter(f"{by!r} is not one of {', '.join(COST_GROUPS)}", param_hint="--by")
    project = open_root(root)
    report, logged = report_ledger(project, by or ""), read_costs(project)
    if as_json:
        print_json({**asdict(report), "logged": logged})
        return
    for number, line in enumerate(render_costs(logged) if has_estimates else render_ledger(report)):
        echo(line, style="" if number else "heading")
