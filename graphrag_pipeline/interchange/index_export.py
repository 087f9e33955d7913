"""Export of a published snapshot into a folder of its own, in the layout of other tools.

The folder is written beside its place and then moved there, so a reader finds the old export, none, or the new one. A
folder with anything in it that no export wrote is never touched: what an export wrote stands in its `MARKER`. Add a
format here by its name and its writer; keep out what the files look like (`graphrag_export.py`, `graphml_file.py`,
`graph_csv.py`).
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.interchange.graph_csv import write_graph_csv
from graphrag_pipeline.interchange.graphml_file import write_graphml
from graphrag_pipeline.interchange.graphrag_export import write_graphrag
from graphrag_pipeline.storage.snapshots import Snapshot

MARKER = "graphrag_pipeline_export.json"
"""What was exported, and the names of the files and folders that were written beside it."""

Writer = Callable[[Snapshot, Path], dict[str, int]]
"""Writes a snapshot's files into an empty folder; returns their number of rows by path."""

FORMATS: dict[str, Writer] = {"graphrag": write_graphrag, "graphml": write_graphml, "csv": write_graph_csv}


@dataclass(frozen=True)
class ExportReport:
    """What an export wrote.

    Attributes:
        folder: where.
        rows: number of rows by path in the folder.
    """

    folder: Path
    rows: dict[str, int]


def export_snapshot(snapshot: Snapshot, target: Path, format: str) -> ExportReport:
    """Write a snapshot to `target`: a folder that is not there, is empty, or holds an earlier export and nothing else.

    Args:
        format: one of `FORMATS`.

    Raises:
        PipelineError: `target` is a file, holds something else, or cannot be written; it stays what it was.
    """
    target = target.resolve()  # the folder behind a link is replaced, not the link
    try:
        _check_target(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        new = _sibling(target)
        try:
            new.mkdir()
            rows = FORMATS[format](snapshot, new)
            _write_marker(snapshot, new, format)
            files.flush_to_disk()
            _move(new, target)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    except (OSError, RuntimeError) as error:  # LanceDB says RuntimeError
        raise files.write_error(target, error) from error
    return ExportReport(target, rows)


def _check_target(target: Path) -> None:
    if target.exists() and not target.is_dir():
        raise PipelineError(f"{target}: is no folder; name one to export into")
    found = sorted(path.name for path in target.iterdir()) if target.is_dir() else []
    foreign = [name for name in found if name not in _written_names(target)]
    if foreign:
        raise PipelineError(
            f"{target}: holds {foreign[0]!r}, which no export wrote, and is not replaced; name a new or empty folder"
        )


def _written_names(target: Path) -> set[str]:
    """Names in the folder that an earlier export wrote; none if there was no export."""
    try:
        return {MARKER, *json.loads((target / MARKER).read_bytes())["names"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _write_marker(snapshot: Snapshot, folder: Path, format: str) -> None:
    content = {
        "format": format,
        "snapshot": snapshot.id,
        "embedding_fingerprint": snapshot.manifest.embedding_fingerprint,
        "names": sorted(path.name for path in folder.iterdir()),
    }
    (folder / MARKER).write_text(json.dumps(content, indent=1), encoding="utf-8")


def _sibling(target: Path) -> Path:
    """A new name beside `target`. Not tempfile's: its folders are for their owner alone."""
    return target.with_name(f"{files.TEMPORARY_PREFIX}{secrets.token_hex(8)}")


def _move(new: Path, target: Path) -> None:
    """Put the folder `new` in the place of `target`; a rename replaces a folder only if it is empty."""
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
