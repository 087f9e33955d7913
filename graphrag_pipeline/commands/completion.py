"""Shell completion of names: methods, strategies, snapshots, stages, and records of the published snapshot.

A completion never fails: without a root, or on any error, there is nothing to complete. Keep out: installing it, which
`--install-completion` does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from graphrag_pipeline.errors import PipelineError

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.root import Root

Complete = Callable[[typer.Context, str], list[str]]
N_NAMES = 50
"""Most names of records that are offered."""


def complete_choice(*choices: str) -> Complete:
    """Return a completion among fixed words."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return complete


def complete_name(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of records that begin like this in any case; their kind is the argument before."""
    return _of_root(ctx, lambda root: list_record_names(root, str(ctx.params.get("kind", "")), incomplete))


def complete_snapshot(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the ids of the snapshots of the root that begin like this, newest first."""
    return _of_root(ctx, lambda root: [name for name in reversed(root.snapshots.ids()) if name.startswith(incomplete)])


def complete_tuned_set(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of the tuned sets of prompts that begin like this."""
    from graphrag_pipeline.pipeline.tuned_sets import list_sets

    return _of_root(ctx, lambda root: [one.name for one in list_sets(root.path) if one.name.startswith(incomplete)])


def list_record_names(root: Root, kind: str, start: str) -> list[str]:
    """Return names of the published snapshot that begin with a text in any case, as the shell can insert them."""
    from graphrag_pipeline.query.index_reader import SnapshotReader
    from graphrag_pipeline.reading.lookup import list_names

    snapshot = root.snapshots.open(None)
    try:
        names = list_names(SnapshotReader(snapshot), kind, start, N_NAMES)
    finally:
        snapshot.close()
    # A shell offers only what begins as the user wrote it.
    kept = [name for name in names if name.startswith(start)] or [start + name[len(start) :] for name in names]
    is_bash = os.environ.get("_GRAPHRAG_PIPELINE_COMPLETE") == "complete_bash"
    return [name.replace(" ", "\\ ") if is_bash else name for name in kept]  # bash inserts a word as it is


def _of_root(context: typer.Context, read: Callable[[Root], list[str]]) -> list[str]:
    """Return what is read from the root that the command would use; nothing on an error."""
    from graphrag_pipeline.pipeline.root import Root, find_root

    try:
        return read(Root(find_root(context.params.get("root") or context.find_root().params.get("root"))))
    except (PipelineError, OSError):
        return []
