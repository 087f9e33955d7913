"""The manifest of a snapshot: the heads it was joined from and its content-named files.

The id of a snapshot is the hash of its manifest, so equal content has an equal id. Keep out: the folder of manifests,
and reading the files they name.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from graphrag_pipeline.filesystem import files
from graphrag_pipeline.storage.vectors.folders import VectorFolder
from graphrag_pipeline.storage.vectors.registry import LANCEDB

FORMAT = 1
ID_DIGITS = 16


def mapped_name(parquet_file: str) -> str:
    """Return the name of the memory-mapped copy of a contract table; it lies beside the Parquet file."""
    return parquet_file.removesuffix(".parquet") + ".arrow"


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
    format: int = FORMAT

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), indent=1, sort_keys=True, ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Manifest:
        values = json.loads(data)
        values["vectors"] = {name: VectorFolder(**folder) for name, folder in values["vectors"].items()}
        values["notes"] = tuple(values["notes"])
        return cls(**values)

    @property
    def id(self) -> str:
        # Whether a LanceDB folder was built whole or by difference is not part of the content.
        content = json.loads(self.to_json())
        del content["code"]  # implied by the code versions, and missing in older manifests
        del content["created_ns"]  # equal content has an equal id at any time
        for folder in content["vectors"].values():
            del folder["n_unindexed"]
        return files.content_hash(json.dumps(content, sort_keys=True).encode())[:ID_DIGITS]

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
