"""The sensor that spreads an index over the run queue: one run a stale bucket, then one for the whole corpus.

Each tick compares the heads in the shared store with the input folder, and requests what is missing and not under way.
Nothing waits in between and no lease is held. What a run left undone, for whatever reason, is missing at the next tick.
After `MAX_ATTEMPTS` runs from the same input, a partition is named in the tick, and requested again only after the user
says so (`index --fan-out`). Runs on a host that fails at everything count less, since it would use up all attempts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg

from graphrag_pipeline.defs.automation.sensors import (
    UNFINISHED,
    Watch,
    read_versions_of_input,
    say_why_not,
    why_busy,
    why_not_unattended,
)
from graphrag_pipeline.defs.runs.executor import IndexRoot
from graphrag_pipeline.defs.runs.loaded_code import code_version_of_all
from graphrag_pipeline.defs.runs.naming import (
    BUCKET_JOB,
    CORPUS_JOB,
    HOST_TAG,
    LISTED_TAG,
    ONLY_STALE_TAG,
    REINDEX_JOBS,
    WANTED_TAG,
    full_name,
)
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.inputs.files import choose_files
from graphrag_pipeline.inputs.listings import listing_version, pack_listing
from graphrag_pipeline.pipeline.fan_out import Level, find_next_level, view_of_store
from graphrag_pipeline.pipeline.root import Root

MAX_ATTEMPTS = 3
"""Runs from the same input after which a partition waits for the user."""
_MAX_ON_SICK = 3 * MAX_ATTEMPTS
"""The same with the runs on sick hosts."""
_N_OF_HOSTS = 200
"""Newest runs that tell which hosts are sick."""
_MAX_NAMED = 5


@dataclass(frozen=True)
class Attempts:
    """The runs of one partition that started from the same input.

    Attributes:
        n_ended: how many ended.
        n_sick: how many of them on a sick host.
        last: id of the newest one; "" without one.
        is_under_way: whether one is queued or at work.
    """

    n_ended: int = 0
    last: str = ""
    is_under_way: bool = False
    n_sick: int = 0

    @property
    def is_stuck(self) -> bool:
        """Whether the partition waits for the user."""
        return self.n_ended - self.n_sick >= MAX_ATTEMPTS or self.n_ended >= _MAX_ON_SICK


def build_fan_out_sensors(root: Root, jobs: Sequence[Any]) -> list[dg.SensorDefinition]:
    """Return the sensor of a root with a shared store; else none.

    Args:
        jobs: all jobs of the root.
    """
    settings, index_root = root.settings, IndexRoot.of(root)
    if not settings.storage.url:
        return []
    names = (full_name(root, BUCKET_JOB), full_name(root, CORPUS_JOB))

    @dg.sensor(
        name=full_name(root, "fan_out_sensor"),
        jobs=[job for job in jobs if job.name in names],
        minimum_interval_seconds=settings.schedule.watch_interval_s,
        default_status=dg.DefaultSensorStatus.RUNNING if settings.schedule.fan_out else dg.DefaultSensorStatus.STOPPED,
        description="Requests a run for each stale bucket, on any machine of the run queue, then one for the graph and "
        "later.",
    )
    def fan_out_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        opened, watch = index_root.open(), Watch.from_json(context.cursor)
        try:
            watch, requests, reason = look(context.instance, opened, watch)
        except PipelineError as error:  # the folder or the store cannot be reached now
            requests, reason = [], str(error)
        if not requests:
            return dg.SensorResult(skip_reason=say_why_not(reason), cursor=watch.to_json())
        context.log.info(reason)
        return dg.SensorResult(run_requests=requests, cursor=watch.to_json())

    return [fan_out_sensor]


def look(instance: dg.DagsterInstance, root: Root, watch: Watch) -> tuple[Watch, list[dg.RunRequest], str]:
    """Return the new state of the sensor, the runs to request, and why, or why none.

    Raises:
        PipelineError: the input folder or the shared store cannot be read.
    """
    if reason := why_busy(instance, root, (*REINDEX_JOBS, CORPUS_JOB)):
        return watch, [], reason
    watch, reason = read_versions_of_input(root, watch)
    if reason or root.shared is None:
        return watch, [], reason
    state = root.shared.read_state()
    view = view_of_store(root, state)
    level = find_next_level(view, state, watch.versions)
    if not level.wanted:
        return watch, [], "the index in the shared store is up to date"
    allowed, number = root.shared.read_allowed()
    level = replace(level, wanted={partition: f"{wanted}-{number}" for partition, wanted in level.wanted.items()})
    if (obstacle := why_not_unattended(view)) and allowed != code_version_of_all(root):
        return watch, [], f"{obstacle} (`index --fan-out` allows it)"
    sick = find_sick_hosts(instance, root)
    requests, stuck = _requests(instance, root, level, sick)
    note = f"; {describe_sick(sick)}" if sick else ""
    if stuck and (not requests or level.is_corpus):
        return watch, [], stuck + note
    return watch, requests, f"{stuck or level.reason}; {len(requests):,} runs requested{note}"


def _requests(
    instance: dg.DagsterInstance, root: Root, level: Level, sick: Collection[str]
) -> tuple[list[dg.RunRequest], str]:
    """Return the runs to request, and which partitions wait for the user."""
    tried = {partition: count_attempts(instance, partition, wanted, sick) for partition, wanted in level.wanted.items()}
    stuck = {partition: each for partition, each in tried.items() if each.is_stuck}
    open_ = [partition for partition, each in tried.items() if partition not in stuck and not each.is_under_way]
    listings = {} if level.is_corpus else _write_listings(root, open_)
    requests = [
        _request(root, partition, level.wanted[partition], tried[partition], listings.get(partition))
        for partition in open_
    ]
    reason = describe_stuck(stuck)
    return requests, reason or ("" if requests else f"{len(level.wanted):,} partitions are under way")


def _request(root: Root, partition: str, wanted: str, tried: Attempts, listed: str | None) -> dg.RunRequest:
    is_corpus = partition == WHOLE
    return dg.RunRequest(
        run_key=f"{partition}-{wanted}-{tried.n_ended + 1}",
        job_name=full_name(root, CORPUS_JOB if is_corpus else BUCKET_JOB),
        partition_key=None if is_corpus else partition,
        tags={WANTED_TAG: f"{partition} {wanted}", ONLY_STALE_TAG: "true", **({LISTED_TAG: listed} if listed else {})},
    )


def _write_listings(root: Root, buckets: Sequence[str]) -> dict[str, str]:
    """Write the files of each bucket to the shared store; return the hash of each list."""
    listed = root.list_input() if buckets else None
    if listed is None or root.shared is None:
        return {}
    found = {}
    for bucket in buckets:
        data = pack_listing(choose_files(listed, root.settings.storage.n_buckets, {bucket}), root.input_folder)
        root.shared.write_listing(bucket, data)
        found[bucket] = listing_version(data)
    return found


def count_attempts(instance: dg.DagsterInstance, partition: str, wanted: str, sick: Collection[str] = ()) -> Attempts:
    """Return the attempts at a partition from the same input; a run with the status of a success counts, too.

    Args:
        sick: hosts whose runs count less (`find_sick_hosts`).
    """
    runs = instance.get_runs(dg.RunsFilter(tags={WANTED_TAG: f"{partition} {wanted}"}))
    if not runs:
        return Attempts()
    ended = [run for run in runs if run.status not in UNFINISHED]
    n_sick = sum(run.tags.get(HOST_TAG) in sick for run in ended)
    return Attempts(len(ended), runs[0].run_id, len(ended) < len(runs), n_sick)


def find_sick_hosts(instance: dg.DagsterInstance, root: Root) -> set[str]:
    """Return the hosts that failed at several buckets since their last success, if another host had successes."""
    failed: dict[str, set[str]] = {}
    healthy: set[str] = set()
    for run in instance.get_runs(
        dg.RunsFilter(job_name=full_name(root, BUCKET_JOB)), limit=_N_OF_HOSTS
    ):  # newest first
        host = run.tags.get(HOST_TAG, "")
        if run.is_success:
            healthy.add(host)
        elif host and run.is_failure and host not in healthy:
            failed.setdefault(host, set()).add(run.tags.get("dagster/partition", ""))
    return {host for host, buckets in failed.items() if len(buckets) >= MAX_ATTEMPTS and healthy - {host}}


def describe_sick(sick: Collection[str]) -> str:
    """Return which machines fail at everything."""
    named = ", ".join(sorted(host.split()[0] for host in sick))
    return f"machine {named} failed at its last buckets, which others index: repair or stop its worker"


def describe_stuck(stuck: dict[str, Attempts]) -> str:
    """Return which partitions are requested no more; "" for none."""
    if not stuck:
        return ""
    named = ", ".join(f"{partition} (last run {each.last})" for partition, each in [*stuck.items()][:_MAX_NAMED])
    more = f" and {len(stuck) - _MAX_NAMED} more" if len(stuck) > _MAX_NAMED else ""
    return (
        f"still stale after {MAX_ATTEMPTS} runs: {named}{more}; look at the run, repair the cause, and run "
        "`graphrag-pipeline index --fan-out`"
    )
