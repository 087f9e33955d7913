"""What is gone from a snapshot, or cut short, told by names, sizes and the ends of files: no content is read.

An immutable folder (arrays, LanceDB) holds the list of its own files with their sizes, written before it gets its final
name; one of an older release has none, and counts as damaged until it gets one. Parquet and Arrow files end with how
they are laid out, so one that was cut cannot be opened. The stages look here, since what they find is made again
(`index`); readers open what is there and tell of what they miss.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from graphrag_pipeline.filesystem import files

if TYPE_CHECKING:
    from graphrag_pipeline.storage.snapshots import Snapshot

LIST_FILE = "files.json"


def list_files(folder: Path) -> None:
    """Write the list of a folder that is complete: {"relative/path": bytes}."""
    sizes = {name: size for name, size in _sizes(folder) if name != LIST_FILE}
    files.replace(folder / LIST_FILE, json.dumps(dict(sorted(sizes.items())), indent=1).encode())


def _sizes(folder: Path) -> Iterator[tuple[str, int]]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path.stat().st_size


def find_damage(folder: Path) -> list[Path]:
    """Files of a folder that are gone or have another size, the list if there is none; the folder if that is gone."""
    try:
        listed: dict[str, int] = json.loads((folder / LIST_FILE).read_bytes())
        sizes = dict(_sizes(folder))
        return [folder / name for name, size in listed.items() if sizes.get(name) != size]
    except (OSError, ValueError, AttributeError):
        return [folder / LIST_FILE if folder.is_dir() else folder]


def is_whole_parquet(path: Path, n_rows: int) -> bool:
    """Whether a Parquet file is there with its end, which says where everything is, and holds so many rows."""
    try:
        with pq.ParquetFile(path) as file:
            return bool(file.metadata.num_rows == n_rows)
    except (OSError, pa.ArrowException):
        return False


def is_whole_arrow(path: Path, n_rows: int) -> bool:
    """Whether an Arrow IPC file is there with its end, and holds so many rows; it is mapped, not read."""
    try:
        with pa.memory_map(str(path)) as mapped:
            return bool(pa.ipc.open_file(mapped).read_all().num_rows == n_rows)
    except (OSError, pa.ArrowException):
        return False


def find_damaged_parts(snapshot: Snapshot) -> list[Path | str]:
    """Files of a snapshot, and collections of vectors in another store, that are gone or not whole."""
    damaged = list(dict.fromkeys([*snapshot.missing_files(), *_damaged_tables(snapshot)]))
    folders = [snapshot.folder / "adjacency" / snapshot.manifest.adjacency]
    if snapshot.manifest.sentences:
        folders.append(snapshot.folder / "sentences" / snapshot.manifest.sentences)
    folders += [path for f in snapshot.manifest.vectors.values() if (path := snapshot.vector_store.folder_of(f))]
    found = [path for folder in folders if folder.exists() for path in find_damage(folder)]
    return [*damaged, *found]


def _damaged_tables(snapshot: Snapshot) -> Iterator[Path]:
    for name in snapshot.manifest.tables:
        n_rows = snapshot.n_rows(name)
        if not is_whole_parquet(snapshot.table_path(name), n_rows):
            yield snapshot.table_path(name)
        if not is_whole_arrow(snapshot.mapped_path(name), n_rows):
            yield snapshot.mapped_path(name)


def tell_damage(parts: list[Path | str]) -> str:
    """Such as "x.npy is gone or not whole (and 2 more)"."""
    more = f" (and {len(parts) - 1} more)" if len(parts) > 1 else ""
    return f"{parts[0]} is gone or not whole{more}"
