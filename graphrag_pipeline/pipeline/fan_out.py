"""The work that is missing in a shared store, level by level, for runs on several machines.

The heads in the store are compared with the input folder and the code, without any table. First come the stale buckets,
each a run of its own. Once they are fresh, the stages over the whole corpus are one run. A bucket is done when its
heads are fresh, whatever the status of its run says. Records that a model failed at do not make a bucket stale here:
they are tried again when it runs, or by `index`. Keep out: starting runs (`defs/automation/fan_out.py`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from graphrag_pipeline.identity import WHOLE, bucket_keys, stable_hash
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import CANDIDATE, STAGES
from graphrag_pipeline.pipeline.staleness import why_stale
from graphrag_pipeline.storage.shared.state import StoreState, head_names
from graphrag_pipeline.storage.table_store import Head, TableStore, code_version_of


@dataclass(frozen=True)
class Level:
    """The next level of missing work: buckets, else the whole corpus.

    Attributes:
        wanted: partition -> hash of everything that its run starts from; {} if the index is up to date.
        reason: why the first of them is stale.
    """

    wanted: Mapping[str, str]
    reason: str = ""

    @property
    def is_corpus(self) -> bool:
        return WHOLE in self.wanted


class _StateTables(TableStore):
    """The tables of a store by the heads of its state; a file is downloaded when it is read."""

    def __init__(self, root: Path, heads: Mapping[str, Head], fetch: Callable[[list[str]], None]) -> None:
        super().__init__(root)
        self._heads, self._fetch = heads, fetch

    def head(self, table: str, partition: str = WHOLE) -> Head | None:
        return self._heads.get(f"{table}/{partition}")

    def read_head(self, head: Head, without: Sequence[str] = ()) -> pa.Table:
        self._fetch([*head_names(head)])
        return super().read_head(head, without)


def view_of_store(root: Root, state: StoreState) -> Root:
    """Return the root with the heads that its shared store has in a state, in place of its own.

    Raises:
        ValueError: the root has no shared store.
    """
    if root.shared is None:
        raise ValueError("the root has no shared store")
    view = copy.copy(root)
    view.tables = _StateTables(root.path, state.heads, root.shared.fetch_files)
    return view


def find_next_level(view: Root, state: StoreState, input_versions: Mapping[str, str]) -> Level:
    """Return the next level of missing work.

    Args:
        view: the root as `view_of_store` returns it.
        input_versions: version of each bucket of the input folder.
    """
    codes = {name: view.code_of(stage) for name, stage in STAGES.items()}
    versions = {name: code_version_of(code) for name, code in codes.items()}
    stale: dict[str, str] = {}
    for name, stage in STAGES.items():
        if not stage.is_partitioned:
            continue
        for bucket in bucket_keys(view.settings.storage.n_buckets):
            version = input_versions[bucket] if not stage.reads else None
            if bucket not in stale and (
                reasons := why_stale(view, stage, bucket, codes[name], version, has_files=False)
            ):
                stale[bucket] = f"{name} {bucket}: {reasons[0]}"
    if stale:
        of_buckets = [versions[name] for name, stage in STAGES.items() if stage.is_partitioned]
        wanted = {bucket: stable_hash(input_versions[bucket], *of_buckets)[:16] for bucket in sorted(stale)}
        return Level(wanted, stale[min(stale)])
    if reason := _why_corpus(view, state, codes):
        data = [head.data_version for _, head in sorted(state.heads.items()) if head.partition != WHOLE]
        return Level(
            {WHOLE: stable_hash(*data, *versions.values(), code_version_of(view.code_of(CANDIDATE)))[:16]}, reason
        )
    return Level({})


def _why_corpus(view: Root, state: StoreState, codes: Mapping[str, Mapping[str, object]]) -> str:
    """Return why a stage over the whole corpus has to run; "" if none has to."""
    for name, stage in STAGES.items():
        if not stage.is_partitioned and (reasons := why_stale(view, stage, WHOLE, codes[name], has_files=False)):
            return f"{name}: {reasons[0]}"
    if reasons := why_stale(view, CANDIDATE, WHOLE, view.code_of(CANDIDATE), has_files=False):
        return f"{CANDIDATE.name}: {reasons[0]}"
    candidate = state.heads[f"{CANDIDATE.name}/{WHOLE}"].data_version
    marks = state.snapshots.get(candidate)
    if state.pinned or state.current == candidate or (marks and marks.refusal):
        return ""
    return f"published snapshot is {state.current}, candidate is {candidate}"
