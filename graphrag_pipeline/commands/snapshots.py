"""Commands about snapshots: `snapshots`, `forget`, `verify`, `import` and `export`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_pipeline.commands.terminal import (
    JsonOption,
    RootOption,
    can_ask,
    complete_snapshot,
    echo,
    open_root,
    print_json,
)
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.interchange import EXPORT_NAMES
from graphrag_pipeline.models.accounting import paid_run
from graphrag_pipeline.text.counted import counted

if TYPE_CHECKING:
    from graphrag_pipeline.storage.snapshot_store import SnapshotFacts

_HOUR_S = 3600

snapshots = typer.Typer(help="List, compare, roll back and prune snapshots.", no_args_is_help=True)
_Id = Annotated[
    str, typer.Argument(metavar="ID", help="Snapshot id or its first digits.", autocompletion=complete_snapshot)
]


def render_pin(pinned: str | None, waiting: str | None, refusal: str = "") -> list[str]:
    """Return lines that say why a candidate is not published; none without a pin or a review.

    Args:
        refusal: of the candidate.
    """
    if pinned is None:
        return [f"candidate {waiting} is not published: {refusal}"] if waiting else []
    lines = [f"snapshot {pinned} is pinned: run `graphrag-pipeline snapshots unpin` to publish newer ones"]
    return [*lines, f"candidate {waiting} is not published because of the pin"] if waiting else lines


@snapshots.command("list")
def list_all(root: RootOption = None, as_json: JsonOption = False) -> None:
    """List all snapshots, newest first."""
    from dataclasses import asdict

    from graphrag_pipeline.pipeline.open_work import find_unpublished_candidate
    from graphrag_pipeline.storage.snapshot_store import list_snapshots

    project = open_root(root)
    project.follow()
    found = list_snapshots(project.snapshots, find_unpublished_candidate(project))
    if as_json:
        print_json([asdict(facts) for facts in found])
        return
    for facts in found:
        counts = ", ".join(f"{facts.rows.get(name, 0):,} {name}" for name in ("documents", "entities", "communities"))
        echo(f"{facts.id}  {facts.created}  {counts}  {' '.join(_marks_of(facts))}".rstrip())
    if not found:
        echo("no snapshots; run `graphrag-pipeline index` to make one")


def _marks_of(facts: SnapshotFacts) -> Iterator[str]:
    from graphrag_pipeline.storage.snapshot_store import review_in

    review = review_in(facts.refusal)
    marks = {
        "published": facts.is_published,
        "pinned": facts.is_pinned,
        "imported": facts.is_imported,
        "waiting": facts.is_waiting and review != "rejected",
        facts.refusal: review == "rejected" and not facts.is_published,
        "not reviewed": review == "waiting" and not facts.is_waiting and not facts.is_published,
        "refused": facts.refusal and not review and not facts.is_published and not facts.is_waiting,
        "unchecked": not (facts.is_checked or facts.refusal),
        "open": facts.is_read,
    }
    return (name for name, is_so in marks.items() if is_so)


@snapshots.command()
def show(snapshot: _Id, root: RootOption = None, as_json: JsonOption = False) -> None:
    """Show the facts and row counts of a snapshot."""
    from dataclasses import asdict

    from graphrag_pipeline.pipeline.open_work import find_unpublished_candidate
    from graphrag_pipeline.storage.snapshot_store import describe_snapshot, find_snapshot

    project = open_root(root)
    project.follow()
    store = project.snapshots
    facts = describe_snapshot(store, find_snapshot(store, snapshot), find_unpublished_candidate(project))
    if as_json:
        print_json(asdict(facts))
        return
    for name in ("id", "created", *(name for name in vars(facts) if name.startswith("is_"))):
        echo(f"{name.removeprefix('is_')}: {getattr(facts, name)}")
    if facts.refusal:
        echo(f"refused: {facts.refusal}")
    for name, n_rows in facts.rows.items():
        echo(f"{name}: {counted(n_rows, 'rows')}")
    for note in facts.notes:
        echo(f"repaired: {note}")


@snapshots.command()
def diff(old: _Id, new: _Id, root: RootOption = None, as_json: JsonOption = False) -> None:
    """Show what changed between two snapshots, and which documents caused it."""
    from dataclasses import asdict

    from graphrag_pipeline.inspection.snapshot_diff import diff_snapshots, render_diff
    from graphrag_pipeline.storage.snapshot_store import find_snapshot

    project = open_root(root)
    project.follow()
    store = project.snapshots
    found = diff_snapshots(*(store.open(find_snapshot(store, start)) for start in (old, new)))
    if as_json:
        print_json(asdict(found))
        return
    for line in render_diff(found):
        echo(line)


@snapshots.command()
def rollback(snapshot: _Id, root: RootOption = None) -> None:
    """Publish an earlier snapshot and pin it: newer ones are not published until `unpin`."""
    from graphrag_pipeline.pipeline.open_work import find_unpublished_candidate
    from graphrag_pipeline.storage.snapshot_store import find_snapshot, roll_back

    project = open_root(root)
    with project.writing():
        snapshot_id = find_snapshot(project.snapshots, snapshot)
        roll_back(project.snapshots, snapshot_id)
    echo(f"published snapshot {snapshot_id}")
    for line in render_pin(snapshot_id, find_unpublished_candidate(project)):
        echo(line)


@snapshots.command()
def unpin(root: RootOption = None) -> None:
    """Remove the pin: new candidates are published again."""
    project = open_root(root)
    with project.writing():
        project.snapshots.unpin()
    echo("no snapshot is pinned; run `graphrag-pipeline index` to publish the newest candidate")


@snapshots.command()
def prune(
    root: RootOption = None,
    keep: Annotated[int, typer.Option(min=1, help="Number of newest snapshots to keep in any case.")] = 3,
    grace_hours: Annotated[
        float, typer.Option(min=0, help="Keep everything that was in use within this number of hours.")
    ] = 24.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be removed.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove old snapshots and files that no snapshot uses."""
    import time
    from dataclasses import asdict

    from graphrag_pipeline.pipeline.retention import prune as prune_root
    from graphrag_pipeline.pipeline.retention import render_sweep

    swept = prune_root(open_root(root), keep, time.time() - grace_hours * _HOUR_S, dry_run)
    if as_json:
        print_json(asdict(swept))
        return
    for line in render_sweep(swept, dry_run):
        echo(line)


def forget(
    document: Annotated[str, typer.Argument(help="Path in the input folder, or id, of a deleted document.")],
    pruned: Annotated[
        bool, typer.Option("--pruned", help="Allow a document that no file names any more, and remove unused replies.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --pruned: do not ask; needed without a terminal.")] = False,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove all traces of a deleted document: old snapshots, files and model replies.

    If no file names the document, nothing is removed. In a terminal you are asked which document you mean.
    """
    from dataclasses import asdict

    from graphrag_pipeline.pipeline.forgetting import UnknownDocumentError, forget_document, render_forgotten
    from graphrag_pipeline.pipeline.retention import render_sweep

    project = open_root(root)
    try:
        forgotten = forget_document(project, document)
    except UnknownDocumentError as error:
        if not (pruned and yes) and not can_ask():
            raise
        meant = None if pruned and yes else _ask_which(document, error.nearest, pruned)
        forgotten = forget_document(project, meant or document, pruned)
    if as_json:
        print_json(asdict(forgotten))
        return
    for line in (*render_sweep(forgotten.swept, is_dry_run=False), *render_forgotten(forgotten)):
        echo(line)


def _ask_which(document: str, nearest: Sequence[str], is_pruned: bool) -> str | None:
    """Return the document that the user means, asked in a terminal; None: it was pruned.

    Raises:
        typer.Abort: none of them, and it is not to be forgotten as a pruned one either.
    """
    echo(f"no snapshot and no file of the index names {document!r}; nothing was removed", err=True)
    for number, path in enumerate(nearest, 1):
        echo(f"{number}  {path}", err=True)
    number = typer.prompt("Which do you mean? (0: none)", type=int, err=True) if nearest else 0
    if 0 < number <= len(nearest):
        return nearest[number - 1]
    if is_pruned and typer.confirm("Remove all replies that the present index does not need?", err=True):
        return None
    raise typer.Abort


_MB = 1_000_000


def verify(
    root: RootOption = None,
    is_repairing: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Repair damaged files: download them, make them again, or remove them so that `index` makes them.",
        ),
    ] = False,
    has_store: Annotated[
        bool,
        typer.Option(
            "--store",
            help="Check also every object of the shared store (`storage.url`): all are downloaded, and not kept. With "
            "--repair, this root uploads again what it has whole.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare every file of the index with its hash; exit with 1 if one is damaged and not repaired."""
    from dataclasses import asdict

    from graphrag_pipeline.pipeline.verification import verify_root

    found = verify_root(open_root(root), is_repairing, has_store)
    if as_json:
        print_json({**asdict(found), "is_whole": found.is_whole})
    else:
        # Lines for a terminal: one for each damaged file, and a summary.
        lines = [f"damaged {finding.kind}: {finding.path}: {finding.outcome}" for finding in found.findings]
        speed = found.n_bytes / _MB / max(found.seconds, 1e-3)
        size = f"{found.n_parts:,} files and folders, {found.n_bytes / _MB:,.1f} MB, at {speed:,.0f} MB/s"
        for line in [*lines, f"checked {size}: {len(found.findings):,} damaged"]:
            echo(line)
    if not found.is_whole:
        raise typer.Exit(1)


def import_index(
    directory: Annotated[Path, typer.Argument(help="Output folder of Microsoft GraphRAG.")],
    root: RootOption = None,
) -> None:
    """Import a Microsoft GraphRAG index and publish it as a snapshot."""
    from graphrag_pipeline.evaluation.regression_gate import try_searches
    from graphrag_pipeline.interchange.graphrag_import import import_graphrag
    from graphrag_pipeline.pipeline.root import init_root

    if root is None:
        raise PipelineError("`import` needs `--root DIR`: the directory that becomes the root of the imported index")
    init_root(root)
    project = open_root(root)
    with project.writing(), paid_run("import", "embeddings"):
        trial = partial(try_searches, project)
        report = import_graphrag(directory, project.path, project.embedder, project.settings, trial)
    for note in report.notes:
        echo(f"repaired: {note}")
    echo(", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in report.rows.items()))
    echo(f"published snapshot {report.snapshot}")


def _check_format(format: str) -> str:
    if format not in EXPORT_NAMES:
        raise typer.BadParameter(f"{format!r} is not one of {', '.join(EXPORT_NAMES)}")
    return format


def export_index(
    directory: Annotated[Path, typer.Argument(help="Folder for the export; an earlier export in it is replaced.")],
    format: Annotated[
        str,
        typer.Option(callback=_check_format, metavar="|".join(EXPORT_NAMES), help="Format of the export."),
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
