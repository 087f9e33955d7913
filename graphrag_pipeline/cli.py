"""The command line: `graphrag-pipeline` and `python -m graphrag_pipeline`.

Each command finds the root, calls one function of the package and prints what it returns: results to standard output,
everything else to standard error. Exit status 0 is success, 1 a `PipelineError` (one line, no traceback), 2 wrong
usage, 130 an interruption. Heavy imports stay inside commands. Keep out: anything a library user would miss.
"""

from __future__ import annotations

import io
import json
import math
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from graphrag_pipeline.errors import PipelineError

app = typer.Typer(
    help="GraphRAG as a Dagster pipeline: index documents as a knowledge graph, ask questions over it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
RootOption = Annotated[
    Path | None, typer.Option("--root", help="Project root; else $GRAPHRAG_ROOT, the current folder or ./data.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_before: dict[str, Path | None] = {"root": None}
"""--root given before the subcommand."""


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
    _before["root"] = root


def _open_root(root: Path | None) -> Any:
    from graphrag_pipeline.root import Root, find_root

    return Root(find_root(root or _before["root"]))


@app.command()
def init(directory: Annotated[Path, typer.Argument(help="Folder to make a root of.")]) -> None:
    """Make a root: documented settings and an empty input folder."""
    from graphrag_pipeline.root import init_root

    made = init_root(directory)
    for path in made:
        typer.echo(f"made {path}")
    typer.echo(f"Put documents into {directory / 'input'}, then run: graphrag-pipeline --root {directory} index")


@app.command()
def index(root: RootOption = None) -> None:
    """Detect what changed, materialise what is stale, check, publish."""
    from graphrag_pipeline.defs.index_run import run_index
    from graphrag_pipeline.progress import IndexProgress

    project = _open_root(root)
    try:
        with IndexProgress() as progress:
            report = run_index(project, progress.plan, progress.advance)
    except KeyboardInterrupt:
        typer.echo("interrupted: what was finished is kept; run `graphrag-pipeline index` again to go on", err=True)
        raise typer.Exit(130) from None
    for path, problem in report.problems:
        typer.echo(f"not read: {path}: {problem}", err=True)
    if report.ran:
        snapshot = project.snapshots.open(report.snapshot)
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


@app.command()
def status(root: RootOption = None, as_json: JsonOption = False) -> None:
    """What is stale and why, and which snapshot is published."""
    from graphrag_pipeline.staleness import detect_input, find_stale, list_problems

    project = _open_root(root)
    manifests = detect_input(project)
    is_imported = project.is_imported  # then the input folder has no part in the index
    stale = [] if is_imported else find_stale(project, manifests)
    problems = [{"path": path, "problem": problem} for path, problem in list_problems(manifests)]
    values = {
        "root": str(project.path),
        "snapshot": project.snapshots.current(),
        "is_imported": is_imported,
        "documents": sum(rows.num_rows for rows in manifests.values()) - len(problems),
        "problems": problems,
        "stale": [{"stage": s.stage, "partition": s.partition, "reasons": list(s.reasons)} for s in stale],
    }
    if as_json:
        _print_json(values)
        return
    origin = " (imported; documents of the input folder are not in it)" if is_imported else ""
    typer.echo(f"root {values['root']}\nsnapshot {values['snapshot'] or 'none published'}{origin}")
    typer.echo(f"{values['documents']:,} documents, {len(problems)} not readable")
    for problem in problems:
        typer.echo(f"  {problem['path']}: {problem['problem']}")
    if not stale and not is_imported:
        typer.echo("everything is fresh")
    for line in _stale_lines(stale):
        typer.echo(line)


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
    option: Annotated[list[str] | None, typer.Option(help="KEY=VALUE over the settings of the method.")] = None,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from the published index."""
    from graphrag_pipeline.query.graph_index import GraphIndex

    options = dict(_parse_option(text) for text in option or [])
    index = GraphIndex.open(_open_root(root).path)
    result = index.search(_as_text(question), method=method, strategy=strategy, context_only=context_only, **options)
    if as_json:
        _print_json(result.to_dict())
    else:
        typer.echo(result.to_markdown())


def _as_text(argument: str) -> str:
    """An argument as UTF-8, whatever the locale says; what is no text becomes a question mark in a box."""
    return os.fsencode(argument).decode("utf-8", errors="replace")


def _parse_option(text: str) -> tuple[str, Any]:
    import yaml

    key, equals, value = (part.strip() for part in text.partition("="))
    if not key or not equals:
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE, such as top_k_entities=20", param_hint="--option")
    if key in ("question", "method", "strategy", "context_only"):
        raise typer.BadParameter(f"{key!r} has an option or argument of its own", param_hint="--option")
    try:
        return key, yaml.safe_load(value)
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

    target = root or _before["root"]
    if target is None:
        raise PipelineError("import needs --root DIR: the folder that becomes the root of the imported index")
    init_root(target)
    project = _open_root(target)
    report = import_graphrag(directory, project.path, project.embedder, project.settings, keep_vectors)
    for note in report.notes:
        typer.echo(f"mended: {note}")
    typer.echo(", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in report.rows.items()))
    typer.echo(f"published snapshot {report.snapshot}")


@app.command()
def sql(
    statement: Annotated[str, typer.Argument(metavar="QUERY", help="SQL over the tables of the published snapshot.")],
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Query the published snapshot's tables with DuckDB."""
    from graphrag_pipeline.storage.sql import render_rows, run_sql

    result = run_sql(_open_root(root).snapshots.open(), _as_text(statement))
    if as_json:
        _print_json(result.to_pylist())
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

    project = _open_root(root)
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


def _print_json(values: Any) -> None:
    """JSON that any reader takes: no NaN, and only ASCII where the terminal is not UTF-8."""
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    typer.echo(json.dumps(_without_nan(values), indent=1, ensure_ascii=not is_utf8, allow_nan=False, default=str))


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
