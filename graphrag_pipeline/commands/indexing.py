"""Commands about the index as a whole: `index`, `status`, `costs` and `merges`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.commands.snapshots import render_pin
from graphrag_pipeline.commands.terminal import (
    JsonOption,
    Line,
    RootOption,
    complete_choice,
    diff_lines,
    echo,
    echo_lines,
    open_root,
    print_json,
)
from graphrag_pipeline.errors import EncodingError, PipelineError
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.text.counted import counted

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline.pipeline.staleness import StalePartition

_MAX_FAILURES_SHOWN = 20
"""Lines on failed records, one for each stage and reason."""
_VARYING = re.compile(r"""(?<!\w)'[^']*'(?!\w)|"[^"]*"|`[^`]*`|[\w-]*\d[\w,.-]*""")
"""Parts in which one reason differs from record to record: quoted texts, numbers and ids."""
_FIGURES = ("aggregation", "averaged_vectors")
"""Keys of `read_embedding_figures`."""


def status(
    root: RootOption = None,
    has_estimate: Annotated[
        bool,
        typer.Option(
            "--estimate/--no-estimate", help="Whether to estimate model calls, and to count those that chunks save."
        ),
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Show what is stale and why, what running it would cost, and which snapshot is published."""
    project = open_root(root)
    project.pull()
    values = _read_state(project, has_estimate)
    if as_json:
        print_json(values)
        return
    echo_lines(_render_state(project, values))


def _read_state(project: Root, has_estimate: bool) -> dict[str, Any]:
    """Return everything that `status` shows, by the keys of `--json`."""
    from dataclasses import asdict

    from graphrag_pipeline.inspection.costs import list_last_problems
    from graphrag_pipeline.pipeline.detected_input import detect_input, list_notes, list_problems
    from graphrag_pipeline.pipeline.open_work import (
        find_unpublished_candidate,
        list_failures,
        list_former_prompts,
        list_long_text_units,
        list_silent_documents,
        list_unread_prompts,
        list_unused_overrides,
        measure_lag,
        summarize_dates,
    )
    from graphrag_pipeline.pipeline.prompt_texts import diff_prompts, find_prompt_problem
    from graphrag_pipeline.pipeline.stage_code import asks_any_model
    from graphrag_pipeline.pipeline.staleness import find_stale
    from graphrag_pipeline.storage.snapshot_store import refusal_of

    manifests = detect_input(project)
    is_imported = project.is_imported  # then the index does not use the input folder
    layout_problem = project.tables.find_layout_problem(project.settings.storage.n_buckets)
    prompt_problem = find_prompt_problem(project)
    stale = [] if is_imported or layout_problem else find_stale(project, manifests)
    is_estimated = has_estimate and bool(stale) and not prompt_problem and asks_any_model(project.settings)
    waiting = find_unpublished_candidate(project)
    problems = [{"path": path, "problem": problem} for path, problem in list_problems(manifests)]
    return {
        "root": str(project.path),
        "snapshot": project.snapshots.current(),
        "pinned": project.snapshots.pinned(),
        "waiting": waiting,
        "refusal": refusal_of(project.snapshots, waiting) if waiting else "",
        "is_imported": is_imported,
        "layout_problem": layout_problem,
        "prompt_problem": prompt_problem,
        "documents": sum(rows.num_rows for rows in manifests.values()) - len(problems),
        "problems": problems,
        "notes": [{"path": path, "note": note} for path, note in list_notes(manifests)],
        "dates": summarize_dates(project),
        "failures": list_failures(project),
        "reports": measure_lag(project).to_dict(),
        "replies": list_last_problems(project),
        "silent_documents": [] if is_imported else list_silent_documents(project),
        "unused_overrides": [] if is_imported else list_unused_overrides(project),
        "unread_prompts": list_unread_prompts(project),
        "long_text_units": [] if is_imported else list_long_text_units(project),
        "former_prompts": list_former_prompts(project),
        "stale": [asdict(item) for item in stale],
        "prompt_differences": diff_prompts(project, _changes_of(stale)),
        **_read_counts(project, stale if is_estimated else [], has_estimate and not is_imported),
    }


def _read_counts(project: Root, stale: Sequence[StalePartition], has_figures: bool) -> dict[str, Any]:
    """Return estimated calls and figures on embedding calls; `uncounted` says why they are missing, "" if they are not.

    Counting needs the tokenizers of the settings, which may have to be downloaded. All else in `status` needs none.
    """
    from dataclasses import asdict

    from graphrag_pipeline.inspection.estimates import estimate_index
    from graphrag_pipeline.inspection.index_state import read_embedding_figures

    counts: dict[str, Any] = {"estimates": [], "uncounted": ""}
    try:
        counts["estimates"] = [asdict(estimate) for estimate in (estimate_index(project, stale) if stale else [])]
        return counts | (read_embedding_figures(project) if has_figures else {})
    except EncodingError as error:
        return counts | {"uncounted": f"calls are not counted: {error}"}


def _changes_of(stale: Iterable[StalePartition]) -> list[Any]:
    return [change for item in stale for change in item.changes]


def _render_state(project: Root, values: Mapping[str, Any]) -> Iterator[Line | str]:
    """Yield the lines of `status`."""
    from graphrag_pipeline.inspection.index_state import render_embedding_figures

    origin = " (imported; it does not contain the documents of the input folder)" if values["is_imported"] else ""
    yield Line(f"root {values['root']}", "heading")
    yield f"snapshot {values['snapshot'] or 'none published'}{origin}"
    yield from render_pin(values["pinned"], values["waiting"], values["refusal"])
    yield from (Line(values[name], "error") for name in ("layout_problem", "prompt_problem") if values[name])
    yield f"{counted(values['documents'], 'documents')}, {len(values['problems'])} not readable"
    if (dates := values["dates"]) and dates["n_dated"]:
        documents = counted(dates["n_documents"], "indexed documents")
        yield f"{dates['n_dated']:,} of {documents} have a date: {dates['first']} to {dates['last']}"
    for problem in values["problems"]:
        yield Line(f"  {problem['path']}: {problem['problem']}", "warning")
    for note in values["notes"]:
        yield Line(f"note: {note['path']}: {note['note']}", "warning")
    yield from (Line(line, "warning") for line in _render_failures(values["failures"]))
    yield from render_lag(values["reports"])
    yield from (
        Line(line, "warning")
        for name in ("unused_overrides", "unread_prompts", "long_text_units", "silent_documents")
        for line in values[name]
    )
    yield from (f"note: {line}" for line in values["former_prompts"])
    yield from (f"last run, left out or repaired in {line}" for line in values["replies"])
    yield from _render_stale(values)
    yield from [Line(values["uncounted"], "warning")] if values["uncounted"] else []
    figures = {key: values[key] for key in _FIGURES if key in values}
    settings = project.settings
    has_model, is_halving = settings.embeddings.engine == "model", settings.embedding_model.refused_texts == "halve"
    yield from render_embedding_figures(figures, has_model, is_halving) if figures else []


def _render_failures(failures: list[dict[str, str]]) -> list[str]:
    """Return one line per stage and reason, the most frequent first, and what comes next.

    `status --json` and the table `failures` of `sql` have every failure. Reasons that differ only in numbers, ids or
    quoted texts are one reason.
    """
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for failure in failures:
        groups.setdefault((failure["stage"], _VARYING.sub("…", failure["reason"])), []).append(failure)
    shown = sorted(groups.values(), key=len, reverse=True)[:_MAX_FAILURES_SHOWN]
    lines = [_render_group(group) for group in shown]
    n_more = len(failures) - sum(map(len, shown))
    lines += [f"and {counted(n_more, 'more failures')}: see `status --json`"] if n_more else []
    return [*lines, "the next `index` asks for these records again"] if lines else []


def _render_group(failures: Sequence[Mapping[str, str]]) -> str:
    """Return how many records of a stage failed for one reason, with the first of them."""
    first = failures[0]
    is_shown = "the reply starts" in first["reason"] or not first["reply"]
    reply = "" if is_shown else f"; the reply starts {first['reply'][:80]!r}"
    record = f"{first['place']} ({first['record'][:8]})" if first["place"] else first["record"]
    records = f"{counted(len(failures), 'records')}, such as {record}" if len(failures) > 1 else record
    return f"failed {first['stage']}: {records}: {first['reason']}{reply}"


def render_lag(reports: dict[str, Any]) -> list[str]:
    """Return a line on deferred reports; none without them."""
    if not reports["n_waiting"]:
        return []
    return [
        f"deferred {reports['n_waiting']:,} of {reports['n_reports']:,} reports: at most "
        f"{reports['largest_new_share']:.1%} of the evidence of a community is new (`reports.rewrite_share`; 0 defers "
        "none)"
    ]


def _render_stale(values: Mapping[str, Any]) -> Iterator[Line | str]:
    """Yield one line per stage and reason, the differences of prompts, and the estimate."""
    from graphrag_pipeline.inspection.costs import StageEstimate, render_estimates

    if not values["stale"] and not values["is_imported"] and not values["layout_problem"]:
        yield Line("everything is fresh", "added")
    groups: dict[tuple[str, str], list[str]] = {}
    for item in values["stale"]:
        groups.setdefault((item["stage"], "; ".join(item["reasons"])), []).append(item["partition"])
    for (stage, why), keys in groups.items():
        yield Line(f"stale {stage}{'' if keys == ['all'] else ' ' + ' '.join(keys)}: {why}", "warning")
    yield from diff_lines(values["prompt_differences"])
    if values["estimates"]:
        yield "model calls of `graphrag-pipeline index`, estimated:"
        yield from render_estimates([StageEstimate(**estimate) for estimate in values["estimates"]])


COST_GROUPS = ("day", "model", "stage", "command")
"""Sums that `costs --by` gives."""


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
    review: Annotated[
        bool, typer.Option("--review", help="Let the result wait for `graphrag-pipeline review`.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that compute; by default one a core. (GRAPHRAG_WORKERS)")
    ] = None,
    max_memory: Annotated[
        float | None,
        typer.Option(min=1, metavar="GB", help="Start only as many processes as fit into it. (GRAPHRAG_MAX_MEMORY)"),
    ] = None,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch", help="Half price: send extraction, descriptions and embeddings to OpenAI's Batch API, and wait."
        ),
    ] = False,
    fan_out: Annotated[
        bool,
        typer.Option("--fan-out", help="Let the machines of Dagster's run queue index, one run a bucket; do not wait."),
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
        list_long_text_units,
        list_silent_documents,
        list_unread_prompts,
        list_unused_overrides,
        measure_lag,
    )
    from graphrag_pipeline.pipeline.progress import IndexProgress
    from graphrag_pipeline.storage.snapshot_store import refusal_of
    from graphrag_pipeline.workers import WorkerPool, choose_number

    project = open_root(root)
    if dry_run:
        project.pull()
        with _in_batches(project, batch, echo):
            _print_estimates(project, as_json, ["communities"] if recluster else [])
        return
    if fan_out:
        _ask_for_fan_out(project)
        return
    account = CallStats()
    try:
        with _reporting_failed(project, account), IndexProgress() as progress:
            accounted = project.counted_in(account)
            pool = WorkerPool(choose_number(workers, max_memory))
            with _in_batches(project, batch, progress.progress) as rounds:
                report = run_index(
                    accounted,
                    progress,
                    allow_empty,
                    is_reclustering=recluster,
                    allow_removal=allow_removal,
                    workers=pool,
                    is_reviewed=review,
                )
    except KeyboardInterrupt:
        echo("interrupted: finished work is kept; run `graphrag-pipeline index` again to continue", err=True)
        raise typer.Exit(130) from None
    for path, problem in report.problems:
        echo(f"not read: {path}: {problem}", err=True)
    for path, note in report.notes:
        echo(f"note: {path}: {note}", err=True)
    for found in report.repairs:
        echo(f"was damaged: {found.path}: {found.outcome}", err=True)
    for find in (list_unused_overrides, list_unread_prompts, list_long_text_units, list_silent_documents):
        for line in find(project):
            echo(line, err=True)
    counts = _count_rows(project, report.waiting or report.snapshot)
    failed = count_failures(project)
    left_out = list_last_problems(project) if account.n_calls or account.n_cached else []
    if as_json:
        values = {"pinned": project.snapshots.pinned(), "rows": counts, "failed_records": failed, "replies": left_out}
        print_json({**asdict(report), **values, "paid": account.as_metadata(), "batch_rounds": dict(rounds)})
        return
    if rounds:
        echo(f"rounds of batches: {', '.join(f'{section} {n}' for section, n in rounds.items())}")
    rows = ", ".join(counted(n_rows, name.replace("_", " ")) for name, n_rows in counts.items())
    echo(f"{counted(report.n_documents, 'documents')}: {rows if report.ran else 'nothing changed'}")
    echo(f"published snapshot {report.snapshot or 'none'}")
    if failed:
        shown = ", ".join(f"{n:,} of {stage}" for stage, n in failed.items())
        echo(f"records without a usable reply: {shown}; `graphrag-pipeline status` shows the reasons", err=True)
    for line in left_out:
        echo(f"left out or repaired in {line}", err=True)
    for line in render_lag(measure_lag(project).to_dict()):
        echo(line)
    refusal = refusal_of(project.snapshots, report.waiting) if report.waiting else ""
    for line in [*render_pin(project.snapshots.pinned(), report.waiting, refusal), *_paid_lines(project, account)]:
        echo(line)


@contextmanager
def _in_batches(project: Root, is_on: bool, report: Callable[[str], object]) -> Iterator[Mapping[str, int]]:
    """Send calls in batches if that is on; give the number of rounds by section, as far as they are done."""
    if not is_on:
        yield {}
        return
    from graphrag_pipeline.models.endpoints.batching import sending_batches
    from graphrag_pipeline.pipeline.stage_code import asks_any_model

    if not asks_any_model(project.settings):
        raise PipelineError("--batch has nothing to send: no step of the index uses a model")
    with sending_batches(project.models.database, report) as desk:
        yield desk.rounds


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
    from graphrag_pipeline.inspection.index_reports import describe_spending, find_unpriced

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


def _ask_for_fan_out(project: Root) -> None:
    """Allow the sensor to index by the code of now, and print what it will request first."""
    from graphrag_pipeline.defs.runs.loaded_code import code_version_of_all
    from graphrag_pipeline.pipeline.detected_input import detect_input, input_versions
    from graphrag_pipeline.pipeline.fan_out import find_next_level, view_of_store

    if project.shared is None:
        raise PipelineError("--fan-out needs a store that all machines share; set storage.url in settings.yaml")
    state = project.shared.read_state()
    level = find_next_level(view_of_store(project, state), state, input_versions(detect_input(project)))
    if not level.wanted:
        echo("the index in the shared store is up to date: nothing to run")
        return
    project.shared.allow(code_version_of_all(project))
    what = "the graph and later" if level.is_corpus else counted(len(level.wanted), "buckets")
    echo(f"next: {what} ({level.reason})")
    echo(
        "fan_out_sensor requests the runs at its next look, within "
        f"{project.settings.schedule.watch_interval_s} s if it is on (schedule.fan_out, or Automation in Dagster's UI)"
    )


def _print_estimates(project: Any, as_json: bool, reclustered: list[str]) -> None:
    from dataclasses import asdict

    from graphrag_pipeline.inspection.costs import describe_models, render_estimates
    from graphrag_pipeline.inspection.estimates import estimate_index
    from graphrag_pipeline.inspection.index_reports import describe_spending
    from graphrag_pipeline.pipeline.detected_input import detect_input
    from graphrag_pipeline.pipeline.stage_code import asks_any_model
    from graphrag_pipeline.pipeline.staleness import find_stale

    if problem := project.tables.find_layout_problem(project.settings.storage.n_buckets):
        raise PipelineError(problem)
    stale = find_stale(project, detect_input(project), reclustered)
    estimates = estimate_index(project, stale)
    spent = project.models.spending if asks_any_model(project.settings) else None
    if as_json:
        budget = describe_spending(spent) if spent else None
        print_json(
            {"stale": [asdict(item) for item in stale], "estimates": [asdict(e) for e in estimates], "budget": budget}
        )
        return
    echo(f"{len(stale):,} partitions of stages would run")
    for line in [*render_estimates(estimates), *describe_models(project.settings, estimates)]:
        echo(line)
    if spent:
        echo(describe_spending(spent))


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

    from graphrag_pipeline.inspection.index_reports import list_merges, preview_merges, render_report
    from graphrag_pipeline.models.accounting import paid_run

    project = open_root(root)
    project.pull()
    with paid_run("merges", "resolution"):
        report = preview_merges(project) if dry_run else list_merges(project)
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
    from graphrag_pipeline.inspection.index_reports import render_ledger, report_ledger

    if by is not None and by not in COST_GROUPS:
        raise typer.BadParameter(f"{by!r} is not one of {', '.join(COST_GROUPS)}", param_hint="--by")
    project = open_root(root)
    report, logged = report_ledger(project, by or ""), read_costs(project)
    if as_json:
        print_json({**asdict(report), "logged": logged})
        return
    for number, line in enumerate(render_costs(logged) if has_estimates else render_ledger(report)):
        echo(line, style="" if number else "heading")
