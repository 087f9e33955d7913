"""The command line: `graphrag-pipeline` and `python -m graphrag_pipeline`.

Each command finds the root, calls one function of the package and prints what it returns; a `PipelineError` is printed
without a traceback and exits with 1. Heavy imports stay inside commands. Keep out: anything a library user would miss.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

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


@app.callback()
def _remember_root(root: RootOption = None) -> None:
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
    with IndexProgress() as progress:
        report = run_index(project, progress.plan, progress.advance)
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
    from graphrag_pipeline.staleness import detect_input, find_stale

    project = _open_root(root)
    manifests = detect_input(project)
    rows = [row for rows in manifests.values() for row in rows.to_pylist()]
    stale = find_stale(project, manifests)
    problems = [{"path": row["path"], "problem": row["problem"]} for row in rows if row["problem"]]
    values = {
        "root": str(project.path),
        "snapshot": project.snapshots.current(),
        "documents": len(rows) - len(problems),
        "problems": problems,
        "stale": [{"stage": s.stage, "partition": s.partition, "reasons": list(s.reasons)} for s in stale],
    }
    if as_json:
        typer.echo(json.dumps(values, indent=1, ensure_ascii=False))
        return
    typer.echo(f"root {values['root']}\nsnapshot {values['snapshot'] or 'none published'}")
    typer.echo(f"{values['documents']:,} documents, {len(problems)} not readable")
    for problem in problems:
        typer.echo(f"  {problem['path']}: {problem['problem']}")
    if not stale:
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
    import yaml

    from graphrag_pipeline.query.graph_index import GraphIndex

    pairs = [text.partition("=") for text in option or []]
    options = {key.strip(): yaml.safe_load(value) for key, _, value in pairs}
    index = GraphIndex.open(_open_root(root).path)
    result = index.search(question, method=method, strategy=strategy, context_only=context_only, **options)
    typer.echo(result.to_json() if as_json else result.to_markdown())


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
    from graphrag_pipeline.storage.sql import run_sql

    result = run_sql(_open_root(root).snapshots.open(), statement)
    if as_json:
        typer.echo(json.dumps(result.to_pylist(), indent=1, ensure_ascii=False, default=str))
    else:
        import pandas as pd

        with pd.option_context("display.max_rows", None, "display.max_columns", None, "display.width", None):
            typer.echo(result.to_pandas().to_string(index=False, max_colwidth=80))


@app.command()
def dev(
    root: RootOption = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 3000,
) -> None:
    """Dagster's UI and daemon, with its home under the root."""
    from graphrag_pipeline.defs.index_run import dagster_home
    from graphrag_pipeline.root import ROOT_VARIABLE

    project = _open_root(root)
    project.tables.check_layout(project.settings.storage.n_buckets)
    os.environ["DAGSTER_HOME"] = str(dagster_home(project).resolve())
    os.environ[ROOT_VARIABLE] = str(project.path)
    program = str(Path(sys.executable).with_name("dagster"))
    arguments = ["dev", "-m", "graphrag_pipeline.definitions", "-h", host, "-p", str(port)]
    os.execv(program, [program, *arguments])


def main() -> None:
    """Entry point: run the command line; a `PipelineError` is one line on standard error and exit status 1."""
    try:
        app()
    except PipelineError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
