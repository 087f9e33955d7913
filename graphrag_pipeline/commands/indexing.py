"""Commands that make and look after an index: `init`, `index`, `merges`, `costs` and `status`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graphrag_pipeline.commands.snapshots import render_pin
from graphrag_pipeline.commands.terminal import JsonOption, RootOption, logging_costs, open_root, print_json
from graphrag_pipeline.errors import PipelineError

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.root import Root

Engine = Literal["embedded", "model"]


def add_indexing_commands(app: typer.Typer) -> None:
    """Mount the commands of this module."""
    for command in (init, index, merges, costs, status):
        app.command()(command)


def init(
    directory: Annotated[Path, typer.Argument(help="Folder to make a root of.")],
    engine: Annotated[Engine, typer.Option(help="Who does the stages: the embedded engine or a model.")] = "embedded",
    chat_model: Annotated[str | None, typer.Option(help="model: name of the chat model.")] = None,
    embedding_model: Annotated[
        str | None, typer.Option(help="model: name of the embedding model; without it, the bundled vectors.")
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="model: an OpenAI-compatible endpoint; else OpenAI's.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="model: environment variable that holds the key.")] = None,
) -> None:
    """Make a root: documented settings, the prompts and an empty input folder."""
    from graphrag_pipeline.pipeline.root import init_root
    from graphrag_pipeline.settings.settings import settings_for_model

    if engine == "model" and not chat_model:
        raise typer.BadParameter("name one: --engine model asks it", param_hint="--chat-model")
    if engine == "embedded" and any((chat_model, embedding_model, base_url, api_key_env)):
        raise typer.BadParameter("the options of a model need --engine model", param_hint="--engine")
    settings = settings_for_model(chat_model, embedding_model, base_url, api_key_env) if chat_model else None
    made = init_root(directory, settings)
    for path in made:
        typer.echo(f"made {path}")
    typer.echo(f"Put documents into {directory / 'input'}, then run: graphrag-pipeline --root {directory} index")


def index(
    root: RootOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate calls, tokens and money per stage; run nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; with --dry-run, of the estimate.")] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Publish an empty index if the input folder has no document.")
    ] = False,
    allow_removal: Annotated[
        bool, typer.Option("--allow-removal", help="Let the first run of a copy take documents out of a shared index.")
    ] = False,
    recluster: Annotated[
        bool, typer.Option("--recluster", help="Cluster communities from cold, whatever was published.")
    ] = False,
) -> None:
    """Detect what changed, materialise what is stale, check, publish."""
    from dataclasses import asdict

    from graphrag_pipeline.defs.index_runs.index_run import run_index
    from graphrag_pipeline.pipeline.open_work import list_unused_overrides, measure_lag
    from graphrag_pipeline.pipeline.progress import IndexProgress

    project = open_root(root)
    if dry_run:
        project.pull()
        _print_estimates(project, as_json, ["communities"] if recluster else [])
        return
    try:
        with IndexProgress() as progress:
            report = run_index(project, progress, allow_empty, is_reclustering=recluster, allow_removal=allow_removal)
    except KeyboardInterrupt:
        typer.echo("interrupted: what was finished is kept; run `graphrag-pipeline index` again to go on", err=True)
        raise typer.Exit(130) from None
    for path, problem in report.problems:
        typer.echo(f"not read: {path}: {problem}", err=True)
    for path, note in report.notes:
        typer.echo(f"note: {path}: {note}", err=True)
    for line in list_unused_overrides(project):
        typer.echo(line, err=True)
    counts = _count_rows(project, report.waiting or report.snapshot)
    if as_json:
        print_json({**asdict(report), "pinned": project.snapshots.pinned(), "rows": counts})
        return
    told = ", ".join(f"{n_rows:,} {name.replace('_', ' ')}" for name, n_rows in counts.items())
    typer.echo(f"{report.n_documents:,} documents: {told if report.ran else 'nothing changed'}")
    typer.echo(f"published snapshot {report.snapshot}")
    for line in _lag_lines(measure_lag(project).to_dict()):
        typer.echo(line)
    for line in render_pin(project.snapshots.pinned(), report.waiting):
        typer.echo(line)


def _count_rows(project: Root, snapshot_id: str) -> dict[str, int]:
    """Rows of the tables that tell most about a snapshot; documents are told apart."""
    from graphrag_pipeline.defs.assets.published import COUNTED

    manifest = project.snapshots.manifest(snapshot_id)
    return {name: manifest.tables[name]["n_rows"] for name in COUNTED if name != "documents"}


def _print_estimates(project: Any, as_json: bool, asked: list[str]) -> None:
    from dataclasses import asdict

    from graphrag_pipeline.inspection.costs import render_estimates
    from graphrag_pipeline.inspection.estimates import asks_any_model, estimate_index
    from graphrag_pipeline.pipeline.detected_input import detect_input
    from graphrag_pipeline.pipeline.staleness import find_stale

    if problem := project.tables.find_layout_problem(project.settings.storage.n_buckets):
        raise PipelineError(problem)
    stale = find_stale(project, detect_input(project), asked)
    estimates = estimate_index(project, stale)
    spent = project.models.spending if asks_any_model(project.settings) else None
    if as_json:
        budget = spent.describe() if spent else None
        print_json(
            {"stale": [asdict(item) for item in stale], "estimates": [asdict(e) for e in estimates], "budget": budget}
        )
        return
    typer.echo(f"{len(stale):,} partitions of stages would run")
    for line in render_estimates(estimates):
        typer.echo(line)
    if spent:
        typer.echo(spent.describe())


def merges(
    root: RootOption = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="What the settings as they are now would merge; nothing is written and no chat model asked. Vectors "
            "that are not stored yet are asked of the embedding model, and paid.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Which names became one entity, and why."""
    from dataclasses import asdict

    from graphrag_pipeline.inspection.merge_report import list_merges, preview_merges, render_report

    project = open_root(root)
    project.pull()
    with logging_costs(project, "merges", "resolution"):
        report = preview_merges(project) if dry_run else list_merges(project)
    if as_json:
        print_json(asdict(report))
        return
    for line in render_report(report):
        typer.echo(line)


def costs(root: RootOption = None, as_json: JsonOption = False) -> None:
    """What was asked of models and what it cost: by `index`, beside what was estimated, and by other commands."""
    from graphrag_pipeline.inspection.costs import read_costs, render_costs

    runs = read_costs(open_root(root))
    if as_json:
        print_json(runs)
        return
    for line in render_costs(runs):
        typer.echo(line)


def status(
    root: RootOption = None,
    has_estimate: Annotated[
        bool, typer.Option("--estimate/--no-estimate", help="Whether to estimate what models would be asked.")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """What is stale and why, what running it would cost, and which snapshot is published."""
    from dataclasses import asdict

    from graphrag_pipeline.inspection.estimates import asks_any_model, estimate_index
    from graphrag_pipeline.pipeline.detected_input import detect_input, list_notes, list_problems
    from graphrag_pipeline.pipeline.open_work import (
        find_unpublished_candidate,
        list_failures,
        list_unused_overrides,
        measure_lag,
    )
    from graphrag_pipeline.pipeline.staleness import find_stale

    project = open_root(root)
    project.pull()
    manifests = detect_input(project)
    is_imported = project.is_imported  # then the input folder has no part in the index
    layout_problem = project.tables.find_layout_problem(project.settings.storage.n_buckets)
    stale = [] if is_imported or layout_problem else find_stale(project, manifests)
    is_estimated = has_estimate and bool(stale) and asks_any_model(project.settings)
    estimates = estimate_index(project, stale) if is_estimated else []
    problems = [{"path": path, "problem": problem} for path, problem in list_problems(manifests)]
    values = {
        "root": str(project.path),
        "snapshot": project.snapshots.current(),
        "pinned": project.snapshots.pinned(),
        "waiting": find_unpublished_candidate(project),
        "is_imported": is_imported,
        "layout_problem": layout_problem,
        "documents": sum(rows.num_rows for rows in manifests.values()) - len(problems),
        "problems": problems,
        "notes": [{"path": path, "note": note} for path, note in list_notes(manifests)],
        "failures": list_failures(project),
        "reports": measure_lag(project).to_dict(),
        "unused_overrides": [] if is_imported else list_unused_overrides(project),
        "stale": [asdict(item) for item in stale],
        "estimates": [asdict(estimate) for estimate in estimates],
    }
    if as_json:
        print_json(values)
        return
    origin = " (imported; documents of the input folder are not in it)" if is_imported else ""
    typer.echo(f"root {values['root']}\nsnapshot {values['snapshot'] or 'none published'}{origin}")
    for line in render_pin(values["pinned"], values["waiting"]):
        typer.echo(line)
    if layout_problem:
        typer.echo(layout_problem)
    typer.echo(f"{values['documents']:,} documents, {len(problems)} not readable")
    for problem in problems:
        typer.echo(f"  {problem['path']}: {problem['problem']}")
    for note in values["notes"]:
        typer.echo(f"note: {note['path']}: {note['note']}")
    for line in [*_failure_lines(values["failures"]), *_lag_lines(values["reports"]), *values["unused_overrides"]]:
        typer.echo(line)
    if not stale and not is_imported and not layout_problem:
        typer.echo("everything is fresh")
    for line in [*_stale_lines(stale), *(_estimate_lines(estimates) if is_estimated else [])]:
        typer.echo(line)


def _estimate_lines(estimates: list[Any]) -> list[str]:
    from graphrag_pipeline.inspection.costs import render_estimates

    return ["`graphrag-pipeline index` would ask for:", *render_estimates(estimates)]


_MAX_FAILURES_SHOWN = 20


def _failure_lines(failures: list[dict[str, str]]) -> list[str]:
    """One line per failure; all of many are in `status --json` and in the table `failures` of `sql`."""
    lines = []
    for failure in failures[:_MAX_FAILURES_SHOWN]:
        reply = f"; the reply starts {failure['reply'][:80]!r}" if failure["reply"] else ""
        lines.append(f"failed {failure['stage']}: {failure['record']}: {failure['reason']}{reply}")
    n_more = len(failures) - len(lines)
    return [*lines, f"and {n_more:,} more failures: see status --json"] if n_more > 0 else lines


def _lag_lines(reports: dict[str, Any]) -> list[str]:
    if not reports["n_waiting"]:
        return []
    return [
        f"{reports['n_waiting']:,} of {reports['n_reports']:,} reports wait until more is new to them: now at most "
        f"{reports['largest_new_share']:.1%} of what is known of a community (reports.rewrite_share; 0 writes them)"
    ]


def _stale_lines(stale: list[Any]) -> list[str]:
    """One line per stage and reason; buckets stale for one reason share a line."""
    from graphrag_pipeline.pipeline.staleness import group_stale

    return [
        f"stale {stage}{'' if keys == ['all'] else ' ' + ' '.join(keys)}: {why}"
        for (stage, why), keys in group_stale(stale).items()
    ]
