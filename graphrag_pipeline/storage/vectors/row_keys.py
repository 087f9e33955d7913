"""Keys of the rows of a vector table: 16-byte hashes that show which rows changed without reading vectors.

`row_keys.arrow` in the folder of a LanceDB table is an Arrow IPC file of one batch: `id` and `key` (a hash of text,
attributes and vector) of each row. It is written with the folder and never changes. Keep out: the update of a folder.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from graphrag_pipeline.arrow_columns import positions
from graphrag_pipeline.filesystem import files

KEYS_FILE = "row_keys.arrow"
_BYTES = 16
KEYS_SCHEMA = pa.schema([("id", pa.string()), ("key", pa.binary(_BYTES))])


@dataclass(frozen=True)
class RowKeys:
    """Keys of rows.

    Attributes:
        ids: (n,) strings.
        keys: uint64 (n, 2).
    """

    ids: pa.Array
    keys: np.ndarray

    def find_changed(self, old: RowKeys) -> tuple[np.ndarray, list[str]]:
        """Return the positions of new and changed rows, ascending, and the ids that only `old` has."""
        found = positions(self.ids, old.ids)
        is_same = found >= 0
        is_same[is_same] = (self.keys[is_same] == old.keys[found[is_same]]).all(axis=1)
        is_gone = np.ones(len(old.ids), dtype=bool)
        is_gone[found[found >= 0]] = False
        return np.flatnonzero(~is_same), sorted(old.ids.filter(pa.array(is_gone)).to_pylist())


def hash_rows(batch: pa.RecordBatch) -> np.ndarray:
    """Return the keys of the rows of a batch with the columns `text`, `attributes` and `vector`: uint64 (n, 2)."""
    vectors = batch["vector"]
    matrix = vectors.flatten().to_numpy().view(np.uint8).reshape(len(batch), 4 * vectors.type.list_size)
    texts, attributes = (batch[name].cast(pa.binary()).to_pylist() for name in ("text", "attributes"))
    digests = [
        hashlib.blake2b(b"%d;%b%b%b" % (len(encoded), encoded, vector, text), digest_size=_BYTES).digest()
        for text, encoded, vector in zip(texts, attributes, matrix, strict=True)
    ]
    return np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 2)


def write_row_keys(folder: Path, rows: RowKeys) -> None:
    """Save the keys of a folder's rows, replacing those of the folder that it was copied from."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(rows.keys))]
    keys = pa.Array.from_buffers(pa.binary(_BYTES), len(rows.ids), buffers)
    table = pa.table([rows.ids, keys], KEYS_SCHEMA)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    files.replace(folder / KEYS_FILE, memoryview(sink.getvalue()))


def read_row_keys(folder: Path) -> RowKeys | None:
    """Return the keys of a folder's rows; None for a folder of an older release."""
    try:
        return keys_of(pa.ipc.open_file(pa.memory_map(str(folder / KEYS_FILE))).read_all())
    except FileNotFoundError:
        return None


def keys_of(rows: pa.Table) -> RowKeys:
    """Return the keys in the columns of a file."""
    table = rows.combine_chunks()
    if not len(table):
        return RowKeys(pa.array([], pa.string()), np.zeros((0, 2), dtype=np.uint64))
    keys = np.frombuffer(table["key"].chunk(0).buffers()[1], dtype=np.uint64, count=2 * len(table)).reshape(-1, 2)
    return RowKeys(table["id"].chunk(0), keys)
