"""The session of an index run: what the Dagster runs of one `index` share with it and with each other.

The index run makes one session and passes it to the definitions of its assets. A run that Dagster starts from its UI
or daemon has a session for each stage, in which nothing is pooled and nothing observes. Keep out: Dagster.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.inputs.files import InputFile
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.models.ports import Failure
from graphrag_pipeline.pipeline.progress import RunObserver
from graphrag_pipeline.workers import WorkerPool


class PooledCalls:
    """Results of the model calls that were made for buckets ahead of their stages, with their accounts."""

    def __init__(self) -> None:
        self._mentions: dict[str, dict[str, Any | Failure]] = {}
        self._accounts: dict[tuple[str, str], CallStats] = {}

    def account(self, bucket: str, stage: str) -> CallStats:
        """Return the account to which calls for a bucket's stage are booked."""
        return self._accounts.setdefault((bucket, stage), CallStats())

    def add(self, bucket: str, unit_id: str, result: Any | Failure) -> None:
        """Keep what a model found in a text unit of a bucket."""
        self._mentions.setdefault(bucket, {})[unit_id] = result

    def take_mentions(self, bucket: str, unit_ids: Sequence[str]) -> list[Any | Failure] | None:
        """Return the results of a bucket's text units, in order, and drop them; None without results of all of them."""
        mentions = self._mentions.pop(bucket, {})
        return [mentions[unit_id] for unit_id in unit_ids] if mentions and mentions.keys() >= set(unit_ids) else None

    def take_account(self, bucket: str, stage: str) -> CallStats | None:
        """Return the calls made for a bucket's stage and drop them; None if no call was made."""
        return self._accounts.pop((bucket, stage), None)


@dataclass
class RunCosts:
    """The calls of models in an index run.

    Attributes:
        by_stage: calls that each stage booked, failed ones too.
        total: all calls since the run began.
        problems: stage -> reason -> number of parts of replies that were left out or repaired.
    """

    by_stage: dict[str, CallStats] = field(default_factory=dict)
    total: CallStats = field(default_factory=CallStats)
    problems: dict[str, Counter[str]] = field(default_factory=dict)

    def book(self, stage: str, account: CallStats) -> None:
        """Add the calls for one partition of a stage, or for one pool."""
        self.by_stage[stage] = self.by_stage.get(stage, CallStats()).merge(account)


@dataclass
class IndexSession:
    """What the Dagster runs of one index run share.

    Attributes:
        observer: receives progress.
        pooled: results of calls made ahead of the stages that need them.
        costs: calls so far.
        caller_accounts: accounts of the code that started the index run, which count all its calls.
        workers: processes that compute.
        listed: the files of the input folder, or those of the run's bucket; None lists them for each bucket.
        manifests: bucket -> its corpus manifest, if the input folder was read before.
        started_buckets: (stage, bucket) -> what a worker makes of it (`assets/by_workers.py`).
        partition: the one that a stage is working on, or worked on last.
    """

    observer: RunObserver = field(default_factory=RunObserver)
    pooled: PooledCalls = field(default_factory=PooledCalls)
    costs: RunCosts = field(default_factory=RunCosts)
    caller_accounts: tuple[CallStats, ...] = ()
    workers: WorkerPool = field(default_factory=WorkerPool)
    listed: Sequence[InputFile] | None = None
    manifests: Mapping[str, pa.Table] = field(default_factory=dict)
    started_buckets: dict[tuple[str, str], Any] = field(default_factory=dict)
    partition: str = WHOLE

    @property
    def accounts(self) -> tuple[CallStats, ...]:
        """The accounts that count every call of the index run."""
        return (self.costs.total, *self.caller_accounts)
