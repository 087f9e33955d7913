"""Origins of the records of a snapshot: stage rows, code version, prompts, model, reply and run.

The manifest of a snapshot lists the files of the stage tables that it was joined from, their code versions, and the
prompts, model and settings of each version. Keep out: which records belong together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.identity import WHOLE, bucket_of
from graphrag_pipeline.pipeline.data_versions import asset_data_version
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES, Stage
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.storage.table_store import code_version_of
from graphrag_pipeline.tables import STAGE_TABLES

FindRun = Callable[[str, str, str], str | None]
"""(stage, partition, data version) -> id of the Dagster run that made it; None if not known."""


@dataclass(frozen=True)
class Origin:
    """Origin of a record.

    Attributes:
        stage, partition: the asset; "all" for one over the whole corpus.
        code_version: of prompts, model, settings and code together.
        model: model of the stage; "" for none, None if a snapshot of an older release does not record it.
        prompts: name -> hash of the prompts of the stage.
        request_key: key of the stored reply that the record was read from; None without a reply: the record was made
            by rule, copied unchanged, or written by the embedded engine because the model failed.
        reply: model, tokens and cost of that reply, if it is still stored.
        run: id of the Dagster run that materialised the partition; None if Dagster does not know.
    """

    stage: str
    partition: str
    code_version: str
    model: str | None
    prompts: Mapping[str, str] = field(default_factory=dict)
    request_key: str | None = None
    reply: Mapping[str, Any] | None = None
    run: str | None = None

    @property
    def asset(self) -> str:
        """Stage and bucket, in words."""
        return self.stage if self.partition == WHOLE else f"{self.stage} of bucket {self.partition}"

    @property
    def is_embedded(self) -> bool:
        """Whether the embedded engine made the record in a stage that can use a model."""
        return self.model == "" and bool(STAGES[self.stage].engine)


class StageRecords:
    """The stage tables behind a snapshot.

    Args:
        root: source of tables, heads and stored replies.
        find_run: called once per partition of a stage.
    """

    def __init__(self, root: Root, snapshot: Snapshot, find_run: FindRun) -> None:
        self._root = root
        self._heads, self._code = snapshot.manifest.heads, snapshot.manifest.code
        self._find_run = find_run
        self._n_buckets = sum(name.startswith("documents/") for name in self._heads)
        self._origins: dict[tuple[str, str], Origin | None] = {}

    def bucket_of(self, document_id: str) -> str:
        """Return the partition of a document's rows; "" if the snapshot has none (imported index)."""
        return bucket_of(document_id, self._n_buckets) if self._n_buckets else ""

    def rows(self, table: str, column: str, values: Collection[str], partition: str = WHOLE) -> list[dict[str, Any]]:
        """Return rows of a partition with one of the values in a column, in file order; none in an imported index."""
        paths = [str(path) for path in self._paths(table, partition) if path.is_file()]
        if not paths or not values:
            return []
        found = ds.dataset(paths, schema=STAGE_TABLES[table].schema, format="parquet")
        is_wanted = ds.field(column).isin(pa.array(sorted(values), pa.string()))
        rows: list[dict[str, Any]] = found.to_table(filter=is_wanted).to_pylist()
        return rows

    def _paths(self, table: str, partition: str) -> list[Path]:
        head = self._heads.get(f"{table}/{partition}", {})
        folder = self._root.path / "tables" / table / partition
        return [folder / file["name"] for file in head.get("files", ())]

    def origin(self, stage: str, partition: str = WHOLE, request_key: str | None = None) -> Origin | None:
        """Return the origin of a record of a stage; None in an imported index.

        Args:
            request_key: of the record.
        """
        key = (stage, partition)
        if key not in self._origins:
            self._origins[key] = self._read_origin(STAGES[stage], partition)
        origin = self._origins[key]
        if origin is None or request_key is None:
            return origin
        reply = self._root.models.cache.read([request_key]).get(request_key)
        figures = {name: getattr(reply, name) for name in ("model", "prompt_tokens", "completion_tokens", "cost")}
        run = self._find_first_run(STAGES[stage], partition, request_key) or origin.run
        return Origin(**{**vars(origin), "request_key": request_key, "reply": figures if reply else None, "run": run})

    @cached_property
    def _heads_of_all(self) -> list[dict[str, dict[str, Any]]]:
        """The heads of every snapshot, oldest first."""
        found = []
        for snapshot_id in self._root.snapshots.ids():
            with suppress(NoSnapshotError):  # a damaged snapshot has no heads
                found.append(self._root.snapshots.manifest(snapshot_id).heads)
        return found

    def _find_first_run(self, stage: Stage, partition: str, request_key: str) -> str | None:
        """Return the run of the oldest snapshot with a row from this reply; later runs may have copied the row."""
        for all_heads in self._heads_of_all:
            heads = [all_heads.get(f"{table}/{partition}") for table in stage.tables]
            if heads[0] and self._holds(stage, partition, heads, request_key):
                data_version = asset_data_version([head["data_version"] if head else None for head in heads])
                return self._find_run(stage.name, partition, data_version) if data_version else None
        return None

    def _holds(self, stage: Stage, partition: str, heads: Sequence[Mapping[str, Any] | None], request_key: str) -> bool:
        folder = self._root.path / "tables"
        for table, head in zip(stage.tables, heads, strict=True):
            if "request_key" in STAGE_TABLES[table].schema.names:
                paths = [folder / table / partition / file["name"] for file in (head or {}).get("files", ())]
                found = [str(path) for path in paths if path.is_file()]
                rows = ds.dataset(found, schema=STAGE_TABLES[table].schema, format="parquet") if found else None
                if rows and rows.count_rows(filter=ds.field("request_key") == request_key):
                    return True
        return False

    def _read_origin(self, stage: Stage, partition: str) -> Origin | None:
        heads = [self._heads.get(f"{table}/{partition}") for table in stage.tables]
        if heads[0] is None:
            return None
        code_version = str(heads[0]["code_version"])
        data_version = asset_data_version([head["data_version"] if head else None for head in heads])
        run = self._find_run(stage.name, partition, data_version) if data_version else None
        code = self._code.get(code_version) or self._read_code(stage, partition, code_version)
        if code is None:
            return Origin(stage.name, partition, code_version, None, run=run)
        prompts = {name.removeprefix("prompt "): value for name, value in code.items() if name.startswith("prompt ")}
        return Origin(stage.name, partition, code_version, code.get(f"{stage.engine} model", ""), prompts, run=run)

    def _read_code(self, stage: Stage, partition: str, code_version: str) -> Mapping[str, Any] | None:
        """Return the parts of a code version missing in the snapshot, from the head or the present settings."""
        head = self._root.tables.head(stage.tables[0], partition)
        if head and head.code_version == code_version:
            return head.code
        code = self._root.code_of(stage)
        return code if code_version_of(code) == code_version else None
