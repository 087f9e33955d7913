"""Checks for missing and cut files of a snapshot, by names, sizes and the ends of files.

No content is read. Parquet and Arrow files end with their layout, so a cut file cannot be opened. Folders of arrays and
vectors hold the list of their files (`filesystem/listed_folders.py`). Stages run these checks, since `index` rebuilds
damaged files; readers open the files and report missing ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from graphrag_pipeline.filesystem.listed_folders import find_damaged_files
from graphrag_pipeline.storage.manifests import Manifest
from graphrag_pipeline.storage.vectors.stores import VectorStore, collection_of


def is_whole_parquet(path: Path, n_rows: int) -> bool:
    """Return whether a Parquet file has its footer and holds `n_rows` rows."""
    try:
        with pq.ParquetFile(path) as file:
            return bool(file.metadata.num_rows == n_rows)
    except (OSError, pa.ArrowException):
        return False


def is_whole_arrow(path: Path, n_rows: int) -> bool:
    """Return whether an Arrow IPC file has its footer and holds `n_rows` rows; the file is mapped, not read."""
    try:
        with pa.memory_map(str(path)) as mapped:
            return bool(pa.ipc.open_file(mapped).read_all().num_rows == n_rows)
    except (OSError, pa.ArrowException):
        return False


def find_missing_parts(folder: Path, manifest: Manifest, vector_store: VectorStore) -> list[Path | str]:
    """Return the files of a snapshot that do not exist, and the vector collections that are missing or incomplete.

    Args:
        folder: the root's `snapshots` folder.
        vector_store: the store that holds the snapshot's vectors.
    """
    paths = [*(manifest.table_path(folder, name) for name in manifest.tables), *manifest.array_folders(folder)]
    collections = [vectors for vectors in manifest.vectors.values() if not vector_store.is_whole(vectors)]
    missing = [f"vector collection {collection_of(vectors)}" for vectors in collections]
    return [*(path for path in paths if not path.exists()), *missing]


def find_damaged_parts(folder: Path, manifest: Manifest, vector_store: VectorStore) -> list[Path | str]:
    """Return the missing parts of a snapshot (`find_missing_parts`) and its files that are not whole."""
    missing = find_missing_parts(folder, manifest, vector_store)
    vectors = (vector_store.folder_of(vectors) for vectors in manifest.vectors.values())
    folders = [*manifest.array_folders(folder), *(path for path in vectors if path)]
    damaged = [path for listed in folders if listed.exists() for path in find_damaged_files(listed)]
    return [*dict.fromkeys([*missing, *_damaged_tables(folder, manifest)]), *damaged]


def _damaged_tables(folder: Path, manifest: Manifest) -> Iterator[Path]:
    for name, entry in manifest.tables.items():
        if not is_whole_parquet(manifest.table_path(folder, name), entry["n_rows"]):
            yield manifest.table_path(folder, name)
        if not is_whole_arrow(manifest.mapped_path(folder, name), entry["n_rows"]):
            yield manifest.mapped_path(folder, name)


def describe_damage(parts: list[Path | str]) -> str:
    """Return a phrase such as "x.npy is missing or not whole (and 2 more)"."""
    more = f" (and {len(parts) - 1} more)" if len(parts) > 1 else ""
    return f"{parts[0]} is missing or not whole{more}"
