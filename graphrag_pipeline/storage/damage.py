"""Missing, cut and changed files of a snapshot, and the hashes that show a change.

Names of Parquet files and of folders of arrays are hashes of their bytes. The mapped copy of a table has its hash in a
file beside it, and a folder of vectors in its list of files (`filesystem/listed_folders.py`). `find_missing_parts` and
`find_damaged_parts` look at names, sizes and the ends of files alone. `find_changed_parts` reads contents: stages run
it before they build on a file, readers run it on the smallest files when they open a snapshot. Keep out: repairs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.listed_folders import (
    each_in_threads,
    find_changed_files,
    find_damaged_files,
    has_hash,
    read_file_list,
)
from graphrag_pipeline.storage.arrays import find_changed_arrays
from graphrag_pipeline.storage.manifests import Manifest, hash_path
from graphrag_pipeline.storage.vectors.stores import SnapshotVectors, collection_of

READ_CHECK_BYTES = 16 << 20
"""Bytes that opening a snapshot checks, smallest parts first: about 10 ms, under 5 % of opening and one question."""
_HASH_NAME = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class StoredPart:
    """One immutable file or folder of a root.

    Attributes:
        kind: in words, such as "stage table".
        find_changed: returns its files whose content has another hash; the flag asks to read them again.
    """

    kind: str
    path: Path
    find_changed: Callable[[Path, bool], list[Path]]

    def changed(self, is_fresh: bool = False) -> list[Path]:
        """Return its files that are missing or changed."""
        return self.find_changed(self.path, is_fresh)

    def n_bytes(self) -> int:
        """Return its size in bytes by its list of files; 0 if it is missing or its list is damaged."""
        try:
            if self.path.is_dir():
                return sum(file.n_bytes for file in read_file_list(self.path).values())
            return self.path.stat().st_size
        except (OSError, ValueError):
            return 0


TABLE, MAPPED_TABLE, ARRAYS, VECTORS, STAGE_TABLE = "table", "mapped table", "arrays", "vectors", "stage table"


def parts_of(folder: Path, manifest: Manifest, vector_store: SnapshotVectors) -> list[StoredPart]:
    """Return the files and folders of a snapshot; vectors in another store than LanceDB have none.

    Args:
        folder: the root's `snapshots` folder.
        vector_store: the store that holds the snapshot's vectors.
    """
    vectors = (vector_store.folder_of(vectors) for vectors in manifest.vectors.values())
    return [
        *(StoredPart(TABLE, manifest.table_path(folder, name), find_changed_file) for name in manifest.tables),
        *(StoredPart(MAPPED_TABLE, manifest.mapped_path(folder, name), _find_changed_copy) for name in manifest.tables),
        *(StoredPart(ARRAYS, path, find_changed_arrays) for path in manifest.array_folders(folder)),
        *(StoredPart(VECTORS, path, find_changed_files) for path in vectors if path),
    ]


def find_changed_file(path: Path, is_fresh: bool = False) -> list[Path]:
    """Return a file named by its hash if it is missing or has other content."""
    is_named = _HASH_NAME.fullmatch(path.stem) is not None
    return [] if (has_hash(path, path.stem, is_fresh) if is_named else path.is_file()) else [path]


def check_file(path: Path) -> None:
    """Raise an error if a file named by its hash is missing or has other content.

    Raises:
        NoSnapshotError: it is; the message says which of both.
    """
    if find_changed_file(path):
        why = "its content is not the one that its name promises" if path.exists() else "no such file"
        raise files.read_error(path, ValueError(why))


def _find_changed_copy(path: Path, is_fresh: bool) -> list[Path]:
    return [] if has_own_hash(path, is_fresh) else [path]


def has_own_hash(mapped_file: Path, is_fresh: bool = False) -> bool:
    """Return whether the mapped copy of a table has the hash in the file beside it."""
    try:
        return has_hash(mapped_file, hash_path(mapped_file).read_text(encoding="ascii"), is_fresh)
    except (OSError, ValueError):
        return False


def find_changed_parts(
    parts: Iterable[StoredPart], max_bytes: int | None = None, is_fresh: bool = False
) -> list[tuple[StoredPart, list[Path]]]:
    """Return the parts with a changed or missing file, and these files.

    Args:
        max_bytes: check only the smallest parts, up to this size together; None: all.
        is_fresh: read files whose hash this process knows, too.
    """
    sized = [(part.n_bytes(), part) for part in parts]
    sized = sized if max_bytes is None else list(_smallest(sized, max_bytes))
    chosen = [part for _, part in sized]
    changed = each_in_threads(lambda part: part.changed(is_fresh), chosen, sum(n_bytes for n_bytes, _ in sized))
    return [(part, paths) for part, paths in zip(chosen, changed, strict=True) if paths]


def _smallest(parts: Iterable[tuple[int, StoredPart]], max_bytes: int) -> Iterator[tuple[int, StoredPart]]:
    left = max_bytes
    for n_bytes, part in sorted(parts, key=lambda pair: (pair[0], pair[1].path)):
        left -= n_bytes
        if left < 0:
            return
        yield n_bytes, part


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


def find_missing_parts(folder: Path, manifest: Manifest, vector_store: SnapshotVectors) -> list[Path | str]:
    """Return the files of a snapshot that do not exist, and the vector collections that are missing or incomplete."""
    paths = [*(manifest.table_path(folder, name) for name in manifest.tables), *manifest.array_folders(folder)]
    collections = [vectors for vectors in manifest.vectors.values() if not vector_store.is_whole(vectors)]
    missing = [f"vector collection {collection_of(vectors)}" for vectors in collections]
    return [*(path for path in paths if not path.exists()), *missing]


def find_damaged_parts(folder: Path, manifest: Manifest, vector_store: SnapshotVectors) -> list[Path | str]:
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


SAMPLE_BYTES = 512 << 20
"""Bytes that each `index` checks at least, about half a second."""
_DAY_S = 86_400


class CheckTimes:
    """When each file of a root was last compared with its hash, in `cache/file_checks.json`; without it, never.

    Args:
        root: the root.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / "cache" / "file_checks.json"
        self._times = self._read()

    def _read(self) -> dict[str, float]:
        try:
            times = json.loads(self._path.read_bytes())
            return {name: float(time) for name, time in times.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def find_due(self, parts: Iterable[StoredPart], now: float, max_days: float) -> list[StoredPart]:
        """Return the parts that were not checked within `max_days`, and the oldest others up to `SAMPLE_BYTES`."""
        due: list[StoredPart] = []
        left = SAMPLE_BYTES
        for part in sorted(parts, key=lambda part: (self._time_of(part), part.path)):
            is_overdue = now - self._time_of(part) > max_days * _DAY_S
            if not is_overdue and left <= 0:
                break
            left -= part.n_bytes()
            due.append(part)
        return due

    def _time_of(self, part: StoredPart) -> float:
        return self._times.get(part.path.relative_to(self._root).as_posix(), 0.0)

    def record(self, checked: Iterable[StoredPart], known: Collection[StoredPart], now: float) -> None:
        """Save that parts were checked now; parts that are not known any more are left out.

        Raises:
            PipelineError: the disk is full or the file cannot be written.
        """
        names = {part.path.relative_to(self._root).as_posix() for part in known}
        times = {name: time for name, time in self._times.items() if name in names}
        times |= {part.path.relative_to(self._root).as_posix(): round(now) for part in checked}
        self._times = times
        files.replace(self._path, json.dumps(dict(sorted(times.items())), indent=0).encode())
