"""Commands that take an index from elsewhere or give it away: `import` and `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from graphrag_pipeline.commands.terminal import RootOption, logging_costs, open_root
from graphrag_pipeline.errors import PipelineError


def add_interchange_commands(app: typer.Typer) -> None:
    """Mount the commands of this module."""
    app.command("import")(import_index)
    app.command("export")(export_index)


def import_index(
    directory: Annotated[Path, typer.Argument(help="Microsoft GraphRAG's output folder.")],
    root: RootOption = None,
    keep_vectors: Annotated[bool, typer.Option("--keep-vectors", help="Keep lancedb/ whatever model made it.")] = False,
) -> None:
    """Import a Microsoft GraphRAG index into a published snapshot."""
    from graphrag_pipeline.interchange.graphrag_import import import_graphrag
    from graphrag_pipeline.pipeline.root import init_root

    if root is None:
        raise PipelineError("import needs --root DIR: the folder that becomes the root of the imported index")
    init_root(root)
    project = open_root(root)
    with project.writing(), logging_costs(project, "import", "embeddings"):
        report = import_graphrag(directory, project.path, project.embedder, project.settings, keep_vectors)
    for note in report.notes:
        typer.echo(f"mended: {note}")
    typer.echo(", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in report.rows.items()))
    typer.echo(f"published snapshot {report.snapshot}")


def export_index(
    directory: Annotated[Path, typer.Argument(help="Folder to make; an earlier export there is replaced.")],
    format: Annotated[Literal["graphrag", "graphml", "csv"], typer.Option(help="What to write.")] = "graphrag",
    root: RootOption = None,
) -> None:
    """Write the published index for Microsoft GraphRAG, as GraphML, or as CSV for graph databases."""
    from graphrag_pipeline.interchange.index_export import export_snapshot

    project = open_root(root)
    project.follow()
    snapshot = project.snapshots.open()
    report = export_snapshot(snapshot, directory, format)
    for path, n_rows in report.rows.items():
        typer.echo(f"{path}: {n_rows:,}")
    typer.echo(f"exported snapshot {snapshot.id} to {report.folder}")
