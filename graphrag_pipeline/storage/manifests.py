"""The manifest of a snapshot: the heads it was joined from and its content-named files.

The id of a snapshot is the hash of its manifest, so equal content has an equal id. A manifest that is read under an id
must have that hash. So a changed bit in it never leads to another file. Keep out: the folder of manifests, and reading
the files they name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from graphrag_pipeline.errors import NewerFormatError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.storage.formats import ANY_KEY, FORMAT, Values, check_names, check_shape, check_version
from graphrag_pipeline.storage.vectors import LANCEDB
from graphrag_pipeline.storage.vectors.folders import VectorFolder
from graphrag_pipeline.tables import CONTRACT_TABLES

ID_DIGITS = 16
_ID = re.compile(rf"[0-9a-f]{{{ID_DIGITS}}}")
_SHAPE = {
    "origin": str,
    "heads": {
        ANY_KEY: {
            "data_version": str, "inputs": {ANY_KEY: str}, "files?": [{"name": str, "n_rows?": int, "n_bytes?": int}],
        }
    },
    "tables": {ANY_KEY: {"file": str, "n_rows": int}},
    "vectors": {
        ANY_KEY: {
            "name": str, "content": str, "n_rows": int, "dimensions": int, "n_unindexed": int, "has_full_text": bool,
        }
    },
    "adjacency": str,
    "embedding_fingerprint": str,
    "notes": [str], "sentences?": str, "sentence_fingerprint?": str, "vector_store?": str,
    "code?": {ANY_KEY: {ANY_KEY: object}}, "created_ns?": int,
}  # fmt: skip
"""Types of a manifest (`check_shape`); an early release did not write all keys."""


def is_snapshot_id(text: object) -> bool:
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def hash_of(manifest: Values) -> str:
    """Return the id that belongs to the JSON of a manifest."""
    content = {**manifest, "vectors": {name: {**folder} for name, folder in manifest["vectors"].items()}}
    content.pop("code", None)  # implied by the code versions, and missing in older manifests
    content.pop("created_ns", None)  # equal content has an equal id at any time
    for folder in content["vectors"].values():
        # Whether a LanceDB folder was built whole or by difference is not part of the content.
        del folder["n_unindexed"]
    return files.content_hash(json.dumps(content, sort_keys=True).encode())[:ID_DIGITS]


def mapped_name(parquet_file: str) -> str:
    """Return the name of the memory-mapped copy of a contract table; it lies beside the Parquet file."""
    return parquet_file.removesuffix(".parquet") + ".arrow"


def hash_path(mapped_file: Path) -> Path:
    """Return the path of the file that holds the SHA-256 of a memory-mapped copy, which is named after other bytes."""
    return mapped_file.with_name(f"{mapped_file.name}.sha256")


@dataclass(frozen=True)
class Manifest:
    """The content of a snapshot.

    Attributes:
        origin: "pipeline" or "import".
        heads: data version, code version and inputs of every stage partition it was joined from, by "table/partition".
        tables: contract table -> content-named Parquet file and its number of rows.
        vectors: vector table -> its folder, or its collection in another store.
        adjacency: folder of the adjacency arrays.
        embedding_fingerprint: the model that made the vectors.
        notes: repairs that an import made, in words.
        sentences: folder of the arrays of the text units' sentences; "" in a snapshot of a release without them.
        sentence_fingerprint: the static embeddings that made the sentences' vectors.
        vector_store: the kind of store that holds the vectors.
        code: the prompts, model and settings of each code version in `heads`, by name.
        created_ns: time of the first write, in ns since 1970; 0 before it, and in a manifest of an earlier release.
        read_id: the id that it was read under; "" for a new one.
    """

    origin: str
    heads: dict[str, dict[str, Any]]
    tables: dict[str, dict[str, Any]]
    vectors: dict[str, VectorFolder]
    adjacency: str
    embedding_fingerprint: str
    notes: tuple[str, ...] = field(default=())
    sentences: str = ""
    sentence_fingerprint: str = ""
    vector_store: str = LANCEDB
    code: dict[str, dict[str, Any]] = field(default_factory=dict)
    created_ns: int = field(default=0, compare=False)
    read_id: str = field(default="", init=False, compare=False)

    def to_json(self) -> bytes:
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.init}
        values |= {"vectors": {name: asdict(folder) for name, folder in self.vectors.items()}, "format": FORMAT}
        return json.dumps(values, indent=1, sort_keys=True, ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, data: bytes, snapshot_id: str, place: object) -> Manifest:
        """Read a manifest.

        Args:
            snapshot_id: the id that names it.
            place: path or URL, for messages.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: it is damaged.
            NewerFormatError: a newer release wrote it.
            PipelineError: it names a file outside its folder.
        """
        raw = json.loads(data)
        values = check_version(raw, place)
        check_shape(values, _SHAPE)
        if any(key.count("/") != 1 for key in values["heads"]):
            raise ValueError("a key of its heads is not a table and a partition")
        if hash_of(raw) != snapshot_id:
            raise ValueError("its content is not that of its id")
        if unknown := values.keys() - {item.name for item in fields(cls) if item.init}:
            raise NewerFormatError(f"`{place}` has the key {min(unknown)!r}, which a later release wrote; upgrade")
        values["vectors"] = {name: VectorFolder(**folder) for name, folder in values["vectors"].items()}
        values["notes"] = tuple(values["notes"])
        manifest = cls(**values)
        object.__setattr__(manifest, "read_id", snapshot_id)  # of an earlier format, the hash is another
        check_names(manifest._names(), place)
        if lacking := CONTRACT_TABLES.keys() - manifest.tables.keys():
            raise ValueError(f"it has no table {min(lacking)!r}")
        return manifest

    def _names(self) -> Iterator[str]:
        """Yield every part of a path that it names."""
        for key, head in self.heads.items():
            yield from key.split("/", 1)
            yield from (file["name"] for file in head.get("files", ()))
        for name, entry in self.tables.items():
            yield from (name, entry["file"])
        for folder in self.vectors.values():
            yield from (folder.name, folder.content)
        yield self.adjacency
        yield from filter(None, [self.sentences])

    @property
    def dimensions(self) -> int | None:
        """Length of the vectors of texts; None without any."""
        lengths = (folder.dimensions for folder in self.vectors.values() if folder.n_rows)
        return next(lengths, None)

    @property
    def id(self) -> str:
        return self.read_id or hash_of(json.loads(self.to_json()))

    # ------------------------------------------------------------- paths of its files below a root's `snapshots` folder

    def table_path(self, folder: Path, name: str) -> Path:
        """Return the path of the Parquet file of a contract table."""
        return folder / "tables" / name / str(self.tables[name]["file"])

    def mapped_path(self, folder: Path, name: str) -> Path:
        """Return the path of the memory-mapped copy of a contract table; snapshots of old releases have no copy."""
        path = self.table_path(folder, name)
        return path.with_name(mapped_name(path.name))

    def array_folders(self, folder: Path) -> list[Path]:
        """Return the folders of its arrays: adjacency, and sentences if it has them."""
        adjacency = folder / "adjacency" / self.adjacency
        return [adjacency, folder / "sentences" / self.sentences] if self.sentences else [adjacency]
