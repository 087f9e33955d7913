"""Export of a published snapshot into a folder, in the layout of other tools.

The folder is written beside its place and then moved there, so a reader finds the old export, none, or the new one. A
folder with a file that no export wrote is never touched; `MARKER` lists all files and folders of an export. Keep out:
the list of formats (`export_formats.py`) and their files (`graphrag_export.py`, `graphml_file.py`, `graph_csv.py`).
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.interchange.export_formats import EXPORT_FORMATS
from graphrag_pipeline.storage.snapshots import Snapshot

MARKER = "graphrag_pipeline_export.json"
"""File with the format, the snapshot, and the paths of all files and folders of an export."""

Writer = Callable[[Snapshot, Path], dict[str, int]]
"""Writes a snapshot's files into an empty folder; returns their number of rows by path."""


@dataclass(frozen=True)
class ExportReport:
    """Result of an export.

    Attributes:
        folder: the folder that was written.
        rows: number of rows by path in the folder.
    """

    folder: Path
    rows: dict[str, int]


def export_snapshot(snapshot: Snapshot, target: Path, format: str) -> ExportReport:
    """Write a snapshot to `target`: a folder that does not exist, is empty, or holds only an earlier export.

    Args:
        format: one of `EXPORT_FORMATS`.

    Raises:
        PipelineError: `target` is a file, holds other files, or cannot be written; it is not changed.
    """
    target = target.resolve()  # the folder behind a link is replaced, not the link
    try:
        _check_target(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        new = _sibling(target)
        try:
            new.mkdir()
            rows = _find_writer(format)(snapshot, new)
            _write_marker(snapshot, new, format)
            files.flush_to_disk(new)
            _check_target(target)  # a file may have been added since
            _move(new, target)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    except (OSError, RuntimeError) as error:  # LanceDB raises RuntimeError
        raise files.write_error(target, error) from error
    return ExportReport(target, rows)


def _find_writer(format: str) -> Writer:
    module, function = EXPORT_FORMATS[format]
    writer: Writer = getattr(import_module(f"graphrag_pipeline.interchange.{module}"), function)
    return writer


def _check_target(target: Path) -> None:
    if target.exists() and not target.is_dir():
        raise PipelineError(f"`{target}` is not a folder; pass a folder to `export`")
    foreign = sorted(set(_paths_below(target)) - _written_paths(target)) if target.is_dir() else []
    if foreign:
        raise PipelineError(
            f"`{target}` holds `{foreign[0]}`, which no export wrote (`{MARKER}` does not list it); nothing was "
            "changed. Move it, or pass a new or empty folder to `export`"
        )


def _paths_below(folder: Path) -> Iterator[str]:
    """Yield the relative paths of all files below a folder, and of all folders, which end with `/`.

    Raises:
        OSError: a folder cannot be listed.
    """
    for parent, folders, names in os.walk(folder, onerror=_raise):
        below = Path(parent).relative_to(folder)
        yield from ((below / name).as_posix() + "/" for name in folders)
        yield from ((below / name).as_posix() for name in names)


def _raise(error: OSError) -> NoReturn:
    raise error


def _written_paths(target: Path) -> set[str]:
    """Return the paths that an earlier export wrote into the folder; none if there was no export.

    An export of an earlier release listed only `names` at the top, so what is below their folders counts as foreign.
    """
    try:
        marker = json.loads((target / MARKER).read_bytes())
        return {MARKER, *(marker["files"] if "files" in marker else marker["names"])}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _write_marker(snapshot: Snapshot, folder: Path, format: str) -> None:
    content = {
        "format": format,
        "snapshot": snapshot.id,
        "embedding_fingerprint": snapshot.manifest.embedding_fingerprint,
        "files": sorted(_paths_below(folder)),
    }
    (folder / MARKER).write_text(json.dumps(content, indent=1), encoding="utf-8")


def _sibling(target: Path) -> Path:
    """Return a new name beside `target`; not by tempfile, whose folders only their owner can read."""
    return target.with_name(f"{files.TEMPORARY_PREFIX}{secrets.token_hex(8)}")


def _move(new: Path, target: Path) -> None:
    """Replace `target` by the folder `new`; a rename replaces only an empty folder."""
    if not (target.exists() and any(target.iterdir())):
        os.rename(new, target)
        return
    old = _sibling(target)
    os.rename(target, old)
    try:
        os.rename(new, target)
    except OSError:
        os.rename(old, target)
        raise
    shutil.rmtree(old)
