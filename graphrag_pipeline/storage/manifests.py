"""What a snapshot is: the heads it was joined from and the content-named files it consists of.

The id of a snapshot is the hash of its manifest, so equal content has an equal id. Keep out: where manifests lie, and
reading what they name.
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
    """What a snapshot is.

    Attributes:
        origin: "pipeline" or "import".
        heads: data version, code version and inputs of every stage partition it was joined from, by "table/partition".
        tables: contract table -> content-named Parquet file and its number of rows.
        vectors: vector table -> its folder, or its collection in another store.
        adjacency: folder of the adjacency arrays.
        embedding_fingerprint: the model whose vectors these are.
        notes: what an import mended, in words.
        sentences: folder of the arrays of the text units' sentences; "" in a snapshot made before there were any.
        sentence_fingerprint: the static embeddings whose vectors those are.
        vector_store: the kind of store that holds the vectors.
        code: what each code version among `heads` stands for (prompts, model, settings), by name.
        created_ns: when it was first written, in ns since 1970; 0 before that, and in one of an earlier release.
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
        # How a LanceDB folder came about (built whole or by difference) is no part of what the snapshot says.
        content = json.loads(self.to_json())
        del content["code"]  # told by its versions, and not there in older manifests
        del content["created_ns"]  # equal content has an equal id, whenever it was made
        for folder in content["vectors"].values():
            del folder["n_unindexed"]
        return files.content_hash(json.dumps(content, sort_keys=True).encode())[:ID_DIGITS]

    # ------------------------------------------------------- paths of its files below a root's `snapshots` folder

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
