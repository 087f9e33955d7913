"""The command line: `graphrag-pipeline` and `python -m graphrag_pipeline`.

Each command finds the root, calls one function of the package and prints what it returns: results to standard output,
everything else to standard error. Exit status 0 is success, 1 a `PipelineError` (one line, no traceback), 2 wrong
usage, 130 an interruption. Heavy imports stay inside commands. Keep out: anything a library user would miss.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.snapshot_commands import add_snapshot_commands, waiting_lines
from graphrag_pipeline.terminal import JsonOption, RootOption, named_before, open_root, print_json

app = typer.Typer(
    help="GraphRAG as a Dagster pipeline: index documents as a knowledge graph, ask questions over it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Engine = Literal["embedded", "model"]


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        typer.echo(f"graphrag-pipeline {version('graphrag-pipeline')}")
        raise typer.Exit


@app.callback()
def _remember_root(
    root: RootOption = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    named_before["root"] = root


@app.command()
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
    from graphrag_pipeline.root import init_root
    from graphrag_pipeline.settings import settings_for_model

    if engine == "model" and not chat_model:
        raise typer.BadParameter("name one: --engine model asks it", param_hint="--chat-model")
    if engine == "embedded" and any((chat_model, embedding_model, base_url, api_key_env)):
        raise typer.BadParameter("the options of a model need --engine model", param_hint="--engine")
    settings = settings_for_model(chat_model, embedding_model, base_url, api_key_env) if chat_model else None
    made = init_root(directory, settings)
    for path in made:
        typer.echo(f"made {path}")
    typer.echo(f"Put documents into {directory / 'input'}, then run: graphrag-pipeline --root {directory} index")


@app.command()
def index(
    root: RootOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate calls, tokens and money per stage; run nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --dry-run: print JSON.")] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Publish an empty index if the input folder has no document.")
    ] = False,
) -> None:
    """Detect what changed, materialise what is stale, check, publish."""
    from graphrag_pipeline.defs.index_run import run_index
    from graphrag_pipeline.progress import IndexProgress
    from graphrag_pipeline.staleness import list_unused_overrides

    project = open_root(root)
    if dry_run:
        _print_estimates(project, as_json)
        return
    try:
        with IndexProgress() as progress:
            report = run_index(project, progress.plan, progress.advance, progress.say, allow_empty)
    except KeyboardInterrupt:
        typer.echo("interrupted: what was finished is kept; run `graphrag-pipeline index` again to go on", err=True)
        raise typer.Exit(130) from None
    for path, problem in report.problems:
        typer.echo(f"not read: {path}: {problem}", err=True)
    for line in list_unused_overrides(project):
        typer.echo(line, err=True)
    if report.ran:
        snapshot = project.snapshots.open(report.waiting or report.snapshot)
        counts = ", ".join(
            f"{snapshot.n_rows(name):,} {label}"
            for name, label in (
                ("text_units", "text units"),
                ("entities", "entities"),
                ("relationships", "relationships"),
                ("communities", "communities"),
            )
        )
        typer.echo(f"{report.n_documents:,} documents: {counts}")
    else:
        typer.echo(f"{report.n_documents:,} documents: nothing changed")
    typer.echo(f"published snapshot {report.snapshot}")
    for line in waiting_lines(project.snapshots.pinned(), report.waiting):
        typer.echo(line)


def _print_estimates(project: Any, as_json: bool) -> None:
    from dataclasses import asdict

    from graphrag_pipeline.costs import render_estimates
    from graphrag_pipeline.estimates import asks_any_model, estimate_index
    from graphrag_pipeline.staleness import detect_input, find_stale

    stale = find_stale(project, detect_input(project))
    estimates = estimate_index(project, stale)
    spent = project.models.spending if asks_any_model(project.settings) else None
    if as_json:
        partitions = [{"stage": s.stage, "partition": s.partition, "reasons": list(s.reasons)} for s in stale]
        budget = spent.describe() if spent else None
        print_json({"stale": partitions, "estimates": [asdict(e) for e in estimates], "budget": budget})
        return
    typer.echo(f"{len(stale):,} partitions of stages would run")
    for line in render_estimates(estimates):
        typer.echo(line)
    if spent:
        typer.echo(spent.describe())


@app.command()
def merges(
    root: RootOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="What the settings as they are now would merge; write and ask nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Which names became one entity, and why."""
    from dataclasses import asdict

    from graphrag_pipeline.merge_report import list_merges, preview_merges, render_report

    project = open_root(root)
    report = preview_merges(project) if dry_run else list_merges(project)
    if as_json:
        print_json(asdict(report))
        return
    for line in render_report(report):
        typer.echo(line)


@app.command()
def costs(root: RootOption = None, as_json: JsonOption = False) -> None:
    """What runs cost in calls of models, beside what was estimated."""
    from graphrag_pipeline.costs import read_costs, render_costs

    runs = read_costs(open_root(root))
    if as_json:
        print_json(runs)
        return
    for line in render_costs(runs):
        typer.echo(line)


@app.command()
def status(root: RootOption = None, as_json: JsonOption = False) -> None:
    """What is stale and why, and which snapshot is published."""
    from graphrag_pipeline.staleness import (
        detect_input,
        find_stale,
        find_waiting,
        list_failures,
        list_problems,
        list_unused_overrides,
    )

    project = open_root(root)
    manifests = detect_input(project)
    is_imported = project.is_imported  # then the input folder has no part in the index
    stale = [] if is_imported else find_stale(project, manifests)
    problems = [{"path": path, "problem": problem} for path, problem in list_problems(manifests)]
    values = {
        "root": str(project.path),
        "snapshot": project.snapshots.current(),
        "pinned": project.snapshots.pinned(),
        "waiting": find_waiting(project),
        "is_imported": is_imported,
        "documents": sum(rows.num_rows for rows in manifests.values()) - len(problems),
        "problems": problems,
        "failures": list_failures(project),
        "unused_overrides": [] if is_imported else list_unused_overrides(project),
        "stale": [{"stage": s.stage, "partition": s.partition, "reasons": list(s.reasons)} for s in stale],
    }
    if as_json:
        print_json(values)
        return
    origin = " (imported; documents of the input folder are not in it)" if is_imported else ""
    typer.echo(f"root {values['root']}\nsnapshot {values['snapshot'] or 'none published'}{origin}")
    for line in waiting_lines(values["pinned"], values["waiting"]):
        typer.echo(line)
    typer.echo(f"{values['documents']:,} documents, {len(problems)} not readable")
    for problem in problems:
        typer.echo(f"  {problem['path']}: {problem['problem']}")
    for line in [*_failure_lines(values["failures"]), *values["unused_overrides"]]:
        typer.echo(line)
    if not stale and not is_imported:
        typer.echo("everything is fresh")
    for line in _stale_lines(stale):
        typer.echo(line)


_MAX_FAILURES_SHOWN = 20


def _failure_lines(failures: list[dict[str, str]]) -> list[str]:
    """One line per failure; all of many are in `status --json` and in the table `failures` of `sql`."""
    lines = []
    for failure in failures[:_MAX_FAILURES_SHOWN]:
        reply = f"; the reply starts {failure['reply'][:80]!r}" if failure["reply"] else ""
        lines.append(f"failed {failure['stage']}: {failure['record']}: {failure['reason']}{reply}")
    n_more = len(failures) - len(lines)
    return [*lines, f"and {n_more:,} more failures: see status --json"] if n_more > 0 else lines


def _stale_lines(stale: list[Any]) -> list[str]:
    """One line per stage and reason; buckets stale for one reason share a line."""
    partitions: dict[tuple[str, str], list[str]] = {}
    for item in stale:
        partitions.setdefault((item.stage, "; ".join(item.reasons)), []).append(item.partition)
    return [
        f"stale {stage}{'' if keys == ['all'] else ' ' + ' '.join(keys)}: {why}"
        for (stage, why), keys in partitions.items()
    ]


@app.command()
def query(
    question: Annotated[str, typer.Argument(help="What to ask.")],
    method: Annotated[str, typer.Option(help="local, global or basic.")] = "local",
    strategy: Annotated[str | None, typer.Option(help="Text unit selection of local search.")] = None,
    context_only: Annotated[bool, typer.Option("--context-only", help="Select the context, write no answer.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what every strategy of local search would pick; no answer.")
    ] = False,
    option: Annotated[list[str] | None, typer.Option(help="KEY=VALUE over the settings of the method.")] = None,
    stream: Annotated[
        bool | None, typer.Option("--stream/--no-stream", help="Show a model's answer as it comes; on in a terminal.")
    ] = None,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from the published index."""
    from graphrag_pipeline.query.graph_index import GraphIndex

    options = dict(_parse_option(text) for text in option or [])
    if explain and method != "local":
        raise typer.BadParameter("only local search has text unit selection strategies", param_hint="--explain")
    index = GraphIndex.open(open_root(root).path)
    if explain:
        _explain(index, _as_text(question), strategy, options, as_json)
        return
    is_model = index.settings.answers.engine == "model" and not (context_only or as_json)
    is_streamed = is_model and (sys.stdout.isatty() if stream is None else stream)
    result = index.search(
        _as_text(question), method, strategy, context_only, _print_piece if is_streamed else None, **options
    )
    if as_json:
        print_json(result.to_dict())
        return
    typer.echo(f"\n\n{result.sources_to_markdown()}".rstrip() if is_streamed else result.to_markdown())
    if line := result.usage.to_line():
        typer.echo(f"\n{line}")


def _print_piece(text: str) -> None:
    typer.echo(text, nl=False)
    sys.stdout.flush()


def _explain(index: Any, question: str, strategy: str | None, options: dict[str, Any], as_json: bool) -> None:
    from graphrag_pipeline.query.explain import explain_strategies, render_explanation, to_records
    from graphrag_pipeline.query.graph_index import METHODS

    settings: Any = METHODS["local"].settings_of(index.settings, strategy, options)
    picks = explain_strategies(index, question, settings)
    if as_json:
        print_json({"question": question, "snapshot": index.snapshot.id, "picks": to_records(picks)})
    else:
        typer.echo(render_explanation(picks))


def _as_text(argument: str) -> str:
    """An argument as UTF-8, whatever the locale says; what is no text becomes a question mark in a box."""
    return os.fsencode(argument).decode("utf-8", errors="replace")


def _parse_option(text: str) -> tuple[str, Any]:
    import yaml

    from graphrag_pipeline.settings_file import parse_yaml

    key, equals, value = (part.strip() for part in text.partition("="))
    if not key or not equals:
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE, such as top_k_entities=20", param_hint="--option")
    if key in ("question", "method", "strategy", "context_only", "say"):
        raise typer.BadParameter(f"{key!r} has an option or argument of its own", param_hint="--option")
    try:
        return key, parse_yaml(value)
    except yaml.YAMLError:
        raise typer.BadParameter(f"{text!r}: the value is no YAML", param_hint="--option") from None


@app.command("import")
def import_index(
    directory: Annotated[Path, typer.Argument(help="Microsoft GraphRAG's output folder.")],
    root: RootOption = None,
    keep_vectors: Annotated[bool, typer.Option("--keep-vectors", help="Keep lancedb/ whatever model made it.")] = False,
) -> None:
    """Import a Microsoft GraphRAG index into a published snapshot."""
    from graphrag_pipeline.interchange.graphrag_import import import_graphrag
    from graphrag_pipeline.root import init_root

    target = root or named_before["root"]
    if target is None:
        raise PipelineError("import needs --root DIR: the folder that becomes the root of the imported index")
    init_root(target)
    project = open_root(target)
    report = import_graphrag(directory, project.path, project.embedder, project.settings, keep_vectors)
    for note in report.notes:
        typer.echo(f"mended: {note}")
    typer.echo(", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in report.rows.items()))
    typer.echo(f"published snapshot {report.snapshot}")


@app.command("export")
def export_index(
    directory: Annotated[Path, typer.Argument(help="Folder to make; an earlier export there is replaced.")],
    format: Annotated[Literal["graphrag", "graphml", "csv"], typer.Option(help="What to write.")] = "graphrag",
    root: RootOption = None,
) -> None:
    """Write the published index for Microsoft GraphRAG, as GraphML, or as CSV for graph databases."""
    from graphrag_pipeline.interchange.index_export import export_snapshot

    snapshot = open_root(root).snapshots.open()
    report = export_snapshot(snapshot, directory, format)
    for path, n_rows in report.rows.items():
        typer.echo(f"{path}: {n_rows:,}")
    typer.echo(f"exported snapshot {snapshot.id} to {report.folder}")


@app.command()
def sql(
    statement: Annotated[str, typer.Argument(metavar="QUERY", help="SQL over the tables of the published snapshot.")],
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Query the published snapshot's tables with DuckDB."""
    from graphrag_pipeline.storage.sql import render_rows, run_sql

    result = run_sql(open_root(root).snapshots.open(), _as_text(statement))
    if as_json:
        print_json(result.to_pylist())
    else:
        typer.echo(render_rows(result))


@app.command()
def dev(
    root: RootOption = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 3000,
) -> None:
    """Dagster's UI and daemon, with its home under the root."""
    from graphrag_pipeline.defs.index_run import dagster_home, open_instance
    from graphrag_pipeline.root import ROOT_VARIABLE

    project = open_root(root)
    project.tables.check_layout(project.settings.storage.n_buckets)
    _check_port(host, port)
    with open_instance(project):  # made here, or a clear error
        os.environ["DAGSTER_HOME"] = str(dagster_home(project))
    os.environ[ROOT_VARIABLE] = str(project.path)
    # Dagster advises its project tool `dg` instead of `dagster dev`; nobody here can follow the advice.
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (os.environ.get("PYTHONWARNINGS"), "ignore:Function")))
    arguments = ["dev", "-m", "graphrag_pipeline.definitions", "-h", host, "-p", str(port)]
    os.execv(sys.executable, [sys.executable, "-m", "dagster", *arguments])


def _check_port(host: str, port: int) -> None:
    """Say at once what Dagster says after half a minute."""
    import socket

    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise PipelineError(
            f"cannot listen on {host}, port {port} ({error.strerror or error}); choose others with --host and --port"
        ) from None


add_snapshot_commands(app)


def main() -> NoReturn:
    """Entry point: run the command line; a `PipelineError` is one line on standard error and exit status 1."""
    # A container's stop ends like Ctrl-C; Dagster does the same while a stage runs.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):  # a terminal that cannot show a character shows its code
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except PipelineError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)
    sys.exit(0)


if __name__ == "__main__":
    main()
