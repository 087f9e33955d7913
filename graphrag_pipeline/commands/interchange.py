"""Commands that exchange an index with other tools: `import` and `export`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from graphrag_pipeline.commands.terminal import SNAPSHOT_GROUP, RootOption, echo, logging_costs, open_root
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.interchange.index_export import EXPORT_FORMATS


def add_interchange_commands(app: typer.Typer) -> None:
    """Mount the commands of this module."""
    app.command("import", rich_help_panel=SNAPSHOT_GROUP)(import_index)
    app.command("export", rich_help_panel=SNAPSHOT_GROUP)(export_index)


def import_index(
    directory: Annotated[Path, typer.Argument(help="Output folder of Microsoft GraphRAG.")],
    root: RootOption = None,
    keep_vectors: Annotated[
        bool, typer.Option("--keep-vectors", help="Keep the vectors in lancedb/ even if another model made them.")
    ] = False,
) -> None:
    """Import a Microsoft GraphRAG index and publish it as a snapshot."""
    from graphrag_pipeline.evaluation.trial_searches import try_searches
    from graphrag_pipeline.interchange.graphrag_import import import_graphrag
    from graphrag_pipeline.pipeline.root import init_root

    if root is None:
        raise PipelineError("`import` needs `--root DIR`: the directory that becomes the root of the imported index")
    init_root(root)
    project = open_root(root)
    with project.writing(), logging_costs(project, "import", "embeddings") as counted:
        trial = partial(try_searches, project)
        report = import_graphrag(directory, project.path, counted.embedder, project.settings, keep_vectors, trial)
    for note in report.notes:
        echo(f"repaired: {note}")
    echo(", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in report.rows.items()))
    echo(f"published snapshot {report.snapshot}")


def _check_format(format: str) -> str:
    if format not in EXPORT_FORMATS:
        raise typer.BadParameter(f"{format!r} is not one of {', '.join(EXPORT_FORMATS)}")
    return format


def export_index(
    directory: Annotated[Path, typer.Argument(help="Folder for the export; an earlier export in it is replaced.")],
    format: Annotated[
        str,
        typer.Option(callback=_check_format, metavar="|".join(EXPORT_FORMATS), help="Format of the export."),
    ] = "graphrag",
    root: RootOption = None,
) -> None:
    """Export the published index for Microsoft GraphRAG, as GraphML, or as CSV for graph databases."""
    from graphrag_pipeline.interchange.index_export import export_snapshot

    project = open_root(root)
    snapshot = project.open_snapshot()
    report = export_snapshot(snapshot, directory, format)
    for path, n_rows in report.rows.items():
        echo(f"{path}: {n_rows:,}")
    echo(f"exported snapshot {snapshot.id} to {report.folder}")
