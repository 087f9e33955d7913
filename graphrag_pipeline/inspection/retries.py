"""Failed records that a run requests again, and the stages that run only if one of them gets a usable reply now.

A record whose replies could not be used is asked once more in each run. If that reply cannot be used either, its stage
writes the same tables as before, so nothing below it runs. Keep out: calls, tokens and money (`estimates.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES, all_upstream_of
from graphrag_pipeline.pipeline.staleness import StalePartition, describe_retry, list_askable, why_stale


class Retries:
    """The retries among stale partitions.

    Args:
        stale: partitions that the run would compute: stage -> partition -> reason.
    """

    def __init__(self, root: Root, stale: Mapping[str, Mapping[str, StalePartition]]) -> None:
        self._root = root
        self._stale = stale

    def count(self, stage: str) -> int:
        """Return the records that a stage requests again, if it is stale for nothing else; else 0."""
        items = self._stale.get(stage, {}).values()
        counts = [len(self._list_keys(item)) for item in items]
        is_only = all(item.reasons == (describe_retry(n),) for item, n in zip(items, counts, strict=True))
        return sum(counts) if is_only else 0

    def decide(self, stage: str) -> bool:
        """Whether a stage runs only if a record whose replies could not be used gets a usable one."""
        above = [other.name for other in all_upstream_of(STAGES[stage]) if other.name in self._stale]
        retried = [name for name in above if self.count(name)]
        followers = [stage, *(name for name in above if name not in retried)]
        return bool(retried) and all(map(self._was_rejected, retried)) and all(map(self._follows, followers))

    def _was_rejected(self, stage: str) -> bool:
        """Whether each retried record of a stage has a stored reply, so that it is no failure of the endpoint."""
        keys = {key for item in self._stale[stage].values() for key in self._list_keys(item)}
        return keys == self._root.models.cache.read(keys).keys()

    def _follows(self, stage: str) -> bool:
        """Whether a stale stage is fresh but for the stages above it."""
        code = self._root.code_of(STAGES[stage])
        return not any(why_stale(self._root, STAGES[stage], partition, code) for partition in self._stale[stage])

    def _list_keys(self, item: StalePartition) -> list[str]:
        head = self._root.tables.head(f"{item.stage}_failures", item.partition)
        return [row["request_key"] for row in list_askable(self._root, head)] if head else []
