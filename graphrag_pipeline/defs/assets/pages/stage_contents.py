"""The tables of one partition as its page in the UI shows them, read by columns: just written, or those of the heads.

Keep out: how they are shown (`previews.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import CANDIDATE, SNAPSHOT, Stage, owner_of
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.tables import CONTRACT_TABLES, STAGE_TABLES


@dataclass(frozen=True)
class StageContents:
    """What a partition of a stage holds, and the tables beside it that give titles to its ids.

    Attributes:
        written: tables that the run just wrote, by name.
    """

    root: Root
    stage: Stage
    partition: str
    written: Mapping[str, pa.Table] = field(default_factory=dict)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that the stage owns; the contract tables for the candidate, none for the snapshot."""
        if self.stage is CANDIDATE:
            return tuple(CONTRACT_TABLES)
        return () if self.stage is SNAPSHOT else self.stage.tables

    def count(self, table: str) -> int:
        """Return the number of rows of a table that the stage owns."""
        if table in self.written or self.is_contract:
            return self._whole(table).num_rows
        head = self.root.tables.head(table, self.partition)
        return head.n_rows if head else 0

    def read(self, table: str, columns: Sequence[str], rows: pa.Array | None = None) -> pa.Table:
        """Return some columns of a table, and only some rows if they are given; without rows if it was never made."""
        if table in self.written or self.is_contract:
            whole = self._whole(table).select(columns)
            return whole if rows is None else whole.take(rows)
        key = self.partition if owner_of(table).is_partitioned else WHOLE
        head = self.root.tables.head(table, key)
        if head is None or not head.files:
            return STAGE_TABLES[table].empty().select(columns)
        stored = self.root.tables.dataset([head])
        return stored.to_table(columns=list(columns)) if rows is None else stored.take(rows, columns=list(columns))

    def _whole(self, table: str) -> pa.Table:
        return self.written[table] if table in self.written else self._candidate.table(table)

    @cached_property
    def _candidate(self) -> Snapshot:
        return self.root.snapshots.open(self.root.tables.need(CANDIDATE.name).data_version)

    def titles_of(self, table: str, title: str = "title", key: str = "id") -> dict[str, str]:
        """Return id -> title of the records of a table."""
        rows = self.read(table, (key, title))
        return dict(zip(rows[key].to_pylist(), rows[title].to_pylist(), strict=True))

    @property
    def is_contract(self) -> bool:
        """Whether the tables are those of the contract, with one description for each record."""
        return self.stage is CANDIDATE
