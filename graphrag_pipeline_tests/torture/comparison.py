"""What a tortured root has at the end, compared with a root that was made from nothing.

Keep out: the commands before it.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.publishing.contract_tables import JOINED_TABLES, join_contract_tables
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.text.tokens import count_tokens_each


def find_difference(path: Path, fresh: Path) -> str:
    """Return the first difference of a root to a fresh one with the same documents; "" if there is none.

    Stage tables must have the same bytes. Contract tables must be those of the fresh root's stage tables, with the
    record numbers of the tortured root, since numbers are carried over from snapshot to snapshot.
    """
    root, other = Root(path), Root(fresh)
    files, expected = _stage_files(root), _stage_files(other)
    if wrong := sorted(key for key in files.keys() | expected.keys() if files.get(key) != expected.get(key)):
        return f"stage table {wrong[0]} (and {len(wrong) - 1} more) has other bytes"
    snapshot = root.snapshots.open()
    try:
        return _find_other_table(snapshot, other)
    finally:
        snapshot.close()


def _find_other_table(snapshot: Snapshot, fresh: Root) -> str:
    stages = {name: _read_whole(fresh, name) for name in JOINED_TABLES}
    joined = join_contract_tables(stages, snapshot.table("record_numbers"), count_tokens_each)
    wrong = [name for name, rows in joined.items() if not rows.equals(snapshot.table(name))]
    return f"contract table {wrong[0]} (and {len(wrong) - 1} more) has other rows" if wrong else ""


def _stage_files(root: Root) -> dict[str, list[str]]:
    heads = map(root.tables.read_stored_head, root.tables.head_paths())
    return {f"{head.table}/{head.partition}": [file.name for file in head.files] for head in heads}


def _read_whole(root: Root, name: str) -> pa.Table:
    """Return a stage table, all partitions in one."""
    keys = sorted(path.stem for path in root.tables.head_paths() if path.parent.name == name)
    return pa.concat_tables([root.tables.read(name, key) for key in keys])
