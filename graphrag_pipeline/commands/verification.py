"""The command `verify`: every immutable file of a root against its hash, and repairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_pipeline.commands.terminal import SNAPSHOT_GROUP, JsonOption, RootOption, echo, open_root, print_json

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.verification import Verification

_MB = 1_000_000


def add_verification_commands(app: typer.Typer) -> None:
    """Mount the command of this module."""
    app.command(rich_help_panel=SNAPSHOT_GROUP)(verify)


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
        for line in render_verification(found):
            echo(line)
    if not found.is_whole:
        raise typer.Exit(1)


def render_verification(found: Verification) -> list[str]:
    """Return lines for a terminal: one for each damaged file, and a summary."""
    lines = [f"damaged {finding.kind}: {finding.path}: {finding.outcome}" for finding in found.findings]
    speed = found.n_bytes / _MB / max(found.seconds, 1e-3)
    size = f"{found.n_parts:,} files and folders, {found.n_bytes / _MB:,.1f} MB, at {speed:,.0f} MB/s"
    return [*lines, f"checked {size}: {len(found.findings):,} damaged"]
