"""An index run in one process: find what is stale, materialise it through Dagster, publish.

The same assets run as in the UI, so runs, events and metadata show there. Keep out: what is stale
(`pipeline/staleness.py`), and what a run refuses (`refusals.py`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from graphrag_pipeline.defs.index_runs.missing_events import (
    confirm_published,
    report_changed_state,
    report_missing_events,
)
from graphrag_pipeline.defs.index_runs.refusals import (
    refuse_empty,
    refuse_import,
    refuse_other_corpus,
    refuse_removal,
    refuse_unreadable_gold,
)
from graphrag_pipeline.defs.runs.instance import keeping_instances, open_instance
from graphrag_pipeline.defs.runs.live import end_dead_runs, host_tags, working
from graphrag_pipeline.defs.runs.naming import (
    ALLOW_REMOVAL_TAG,
    CHANGED_TAG,
    INDEX,
    KIND_TAG,
    ONLY_STALE_TAG,
    RECLUSTER_TAG,
    REVIEW_TAG,
    STARTED_BY_TAG,
    asset_key,
    has_option,
    tag_option,
)
from graphrag_pipeline.defs.runs.records import prune_runs
from graphrag_pipeline.defs.runs.session import IndexSession
from graphrag_pipeline.errors import DamagedFileError, InputChangedError, PipelineError
from graphrag_pipeline.identity import WHOLE, bucket_keys
from graphrag_pipeline.pipeline.detected_input import detect_input, list_notes, list_problems
from graphrag_pipeline.pipeline.file_repairs import DamagedFile, check_passed
from graphrag_pipeline.pipeline.open_work import find_unpublished_candidate
from graphrag_pipeline.pipeline.progress import RunObserver
from graphrag_pipeline.pipeline.prompt_texts import check_prompts
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, STAGES
from graphrag_pipeline.pipeline.staleness import StalePartition, find_stale
from graphrag_pipeline.pipeline.verification import repair_before_index
from graphrag_pipeline.storage.locks import one_index_run
from graphrag_pipeline.workers import WorkerPool, choose_number

if TYPE_CHECKING:
    import pyarrow as pa
    from dagster import AssetKey, DagsterInstance


_MAX_NAMED = 3  # changed files in the tag of a run
INPUT_STAGE = "corpus_manifest"
_MAX_ATTEMPTS = 3
"""How often files that change while they are read are read again."""


@dataclass(frozen=True)
class IndexReport:
    """The outcome of an index run.

    Attributes:
        ran: (stage, partition) computed.
        reused: (stage, partition) that turned out fresh once the stages above had run.
        n_documents: readable documents in the input folder.
        problems: (path, problem) of documents that could not be read.
        notes: (path, note) of documents that were read with a warning.
        snapshot: id of the published snapshot.
        waiting: id of the candidate that is not published because another snapshot is pinned; None without one.
        repairs: damaged files that were found and repaired.
    """

    ran: list[tuple[str, str]]
    reused: list[tuple[str, str]]
    n_documents: int
    problems: list[tuple[str, str]]
    notes: list[tuple[str, str]]
    snapshot: str
    waiting: str | None = None
    repairs: tuple[DamagedFile, ...] = ()


class _Recorder(RunObserver):
    """Notes what ran and what was reused, and passes all news on."""

    def __init__(self, observer: RunObserver) -> None:
        self._observer = observer
        self.ran: list[tuple[str, str]] = []
        self.reused: list[tuple[str, str]] = []

    def plan(self, stale: list[StalePartition]) -> None:
        self._observer.plan(stale)

    def progress(self, message: str) -> None:
        self._observer.progress(message)

    def begin(self, stage: str, partition: str) -> None:
        self._observer.begin(stage, partition)

    def finish(self, stage: str, partition: str, is_fresh: bool) -> None:
        (self.reused if is_fresh else self.ran).append((stage, partition))
        self._observer.finish(stage, partition, is_fresh)


def run_index(
    root: Root,
    observer: RunObserver | None = None,
    allow_empty: bool = False,
    tags: Mapping[str, str] | None = None,
    is_reclustering: bool = False,
    allow_removal: bool = False,
    workers: WorkerPool | None = None,
    is_reviewed: bool = False,
) -> IndexReport:
    """Bring the index of a root up to date and publish it, unless a snapshot is pinned or it has to be reviewed.

    Args:
        observer: receives what is stale, how far model calls are, and every partition that is done.
        allow_empty: publish an empty index if the input folder has no readable document.
        tags: of Dagster's runs, in addition to those of the index run itself.
        is_reclustering: cluster communities from cold, also where nothing changed.
        allow_removal: publish although more documents are gone than `publishing.max_removed_share` allows, or, in
            the first run of this root at a shared store, documents that its input folder does not have.
        workers: processes that compute; by default one a core (`workers.choose_number`). They do not change the result.
        is_reviewed: let the candidate wait for review, whatever `publishing.review` says.

    Raises:
        PipelineError: a stage or check failed, no document is readable, or the root holds an imported index. Finished
            work is kept and the published snapshot stays.
        KeyboardInterrupt: Ctrl-C, or SIGTERM while a stage ran; likewise.
    """
    tags = {**(tags or {}), ONLY_STALE_TAG: "true", **(tag_option(RECLUSTER_TAG) if is_reclustering else {})}
    tags |= tag_option(ALLOW_REMOVAL_TAG) if allow_removal or allow_empty else {}
    tags |= tag_option(REVIEW_TAG) if is_reviewed else {}
    with one_index_run(root.path), root.writing(), keeping_instances():
        if allow_removal and root.shared:
            root.shared.join()
        observer = _Recorder(observer or RunObserver())
        return _run_index(root, observer, allow_empty, tags, workers or WorkerPool(choose_number()))


def run_stages(
    root: Root,
    stages: Iterable[str],
    observer: RunObserver | None = None,
    tags: Mapping[str, str] | None = None,
) -> None:
    """Compute some stages in every partition, stale or not; stored replies and vectors of models are used again.

    Raises:
        PipelineError: a stage or check failed, or an input of a stage was never made.
    """
    with one_index_run(root.path), root.writing(), keeping_instances():
        refuse_import(root)
        root.tables.check_layout(root.settings.storage.n_buckets)
        chosen = [ALL_STAGES[name] for name in ALL_STAGES if name in set(stages)]
        check_prompts(root, chosen)
        wanted = [StalePartition(s.name, key, ("asked for",)) for s in chosen for key in s.partitions(root.settings)]
        session = IndexSession(observer or RunObserver(), workers=WorkerPool(choose_number()))
        session.observer.plan(wanted)
        _materialize(root, wanted, session, tags or {}, {})
        report_missing_events(root)


def _run_index(
    root: Root, recorder: _Recorder, allow_empty: bool, tags: Mapping[str, str], workers: WorkerPool
) -> IndexReport:
    repairs = [*repair_before_index(root).findings]
    for attempt in range(1, _MAX_ATTEMPTS + 1):
        listed = root.list_input()
        manifests = detect_input(root, listed)
        problems = list_problems(manifests)
        n_documents = sum(rows.num_rows for rows in manifests.values()) - len(problems)
        refuse_import(root)
        if not n_documents and not allow_empty:
            refuse_empty(root, problems)
        if root.shared and root.shared.has_index and not root.shared.is_joined:
            refuse_other_corpus(root, root.shared, manifests)
            root.shared.join()
        root.tables.check_layout(root.settings.storage.n_buckets)
        if not has_option(tags, ALLOW_REMOVAL_TAG):
            refuse_removal(root, manifests)
        stale = find_stale(root, manifests, ["communities"] if has_option(tags, RECLUSTER_TAG) else [])
        if stale:
            check_prompts(root, STAGES.values())
            refuse_unreadable_gold(root)
        recorder.plan(stale)
        try:
            session = IndexSession(recorder, workers=workers, listed=listed, manifests=manifests)
            _materialize(root, stale, session, tags, _name_changed(root, stale, manifests))
            break
        except InputChangedError:
            if attempt == _MAX_ATTEMPTS:
                raise
        except DamagedFileError:
            if attempt == _MAX_ATTEMPTS:
                raise
            repairs += repair_before_index(root, is_all=True).findings
        except PipelineError:
            report_changed_state(root, manifests)
            raise
    if not all(one.is_repaired for one in repairs):  # lists of checks, which run once the stages made the files again
        again = {one.path: one for one in check_passed(root, is_repairing=True)}
        repairs = [again.get(one.path, one) for one in repairs]
    report_missing_events(root)
    report_changed_state(root, manifests)
    prune_runs(root)
    waiting = find_unpublished_candidate(root)
    if not recorder.ran and not waiting:
        confirm_published(root)
    current, notes = root.snapshots.current() or "", list_notes(manifests)
    ran, reused = recorder.ran, recorder.reused
    return IndexReport(ran, reused, n_documents, problems, notes, current, waiting, tuple(repairs))


def _name_changed(root: Root, stale: list[StalePartition], manifests: Mapping[str, pa.Table]) -> dict[str, list[str]]:
    """Return the paths of changed files by bucket, and those of all buckets for the whole corpus."""
    read = [item.partition for item in stale if item.stage == INPUT_STAGE]
    if not read:
        return {}
    from graphrag_pipeline.defs.assets.sources import changed_paths

    changed = {bucket: changed_paths(root, bucket, manifests[bucket]) for bucket in read}
    return changed | {WHOLE: sorted({path for paths in changed.values() for path in paths})}


def _tag_changed(paths: Sequence[str]) -> dict[str, str]:
    """Return the tag of a run that indexes changed files, with the first of them."""
    more = f" and {len(paths) - _MAX_NAMED:,} more" if len(paths) > _MAX_NAMED else ""
    return {CHANGED_TAG: ", ".join(paths[:_MAX_NAMED]) + more} if paths else {}


def _materialize(
    root: Root,
    stale: list[StalePartition],
    session: IndexSession,
    tags: Mapping[str, str],
    changed: Mapping[str, list[str]],
) -> None:
    """Run stale partitions: bucket by bucket up to the stages that call models, their calls in one pool, then the rest.

    Args:
        changed: paths of changed files by partition; a tag of the run over the corpus names the first of all.

    Raises:
        BaseException: the first failure.
    """
    if not stale:
        return
    from graphrag_pipeline.defs.assets.by_workers import start_early
    from graphrag_pipeline.defs.assets.ledger import report_costs
    from graphrag_pipeline.defs.index_runs.costs import log_costs
    from graphrag_pipeline.defs.runs.call_pool import call_ahead, pooled_stages

    session.caller_accounts = root.accounts
    workers = session.workers
    root = root.counted_in(session.costs.total)
    whole = [item for item in stale if item.partition == WHOLE]
    pooled = pooled_stages(root)
    buckets = [item for item in stale if item.partition != WHOLE]
    first = [item for item in buckets if item.stage not in pooled]
    second = [item for item in buckets if item.stage in pooled]
    with open_instance(root) as instance, ExitStack() as held:
        held.enter_context(workers)
        workers.n = min(workers.n, root.settings.storage.n_buckets)  # more would wait
        start_early(root, len(changed.get(WHOLE, ())), session)
        held.callback(report_costs, instance, root)
        prepare = held.enter_context(log_costs(root, session, tags.get(STARTED_BY_TAG, "")))
        end_dead_runs(instance, root)
        begun_by = {} if STARTED_BY_TAG in tags else {KIND_TAG: INDEX}
        materialize = _materializer(root, session, instance, {**tags, **begun_by, **host_tags()}, changed)
        materialize(first)
        prepare([*second, *whole])
        call_ahead(root, sorted({item.partition for item in second}), session)
        materialize(second)
        materialize(whole)


def _materializer(
    root: Root,
    session: IndexSession,
    instance: DagsterInstance,
    tags: Mapping[str, str],
    changed: Mapping[str, list[str]],
) -> Callable[[list[StalePartition]], None]:
    """Return a function that runs stale partitions, and raises the first failure.

    Args:
        changed: paths of changed files by partition; a tag of a run over the corpus names the first of all.
    """
    import dagster as dg

    from graphrag_pipeline.defs.index_runs.definitions import build_index_definitions

    job = build_index_definitions(root, session).resolve_implicit_global_asset_job_def()

    def materialize(stale: list[StalePartition]) -> None:
        selections: dict[str, list[dg.AssetKey]] = {}
        for item in stale:
            selections.setdefault(item.partition, []).append(asset_key(root, item.stage))
        for assets, partitions in _in_ranges(root, selections):
            run_id = str(uuid.uuid4())
            shown = _name_range(partitions) or _tag_changed(changed.get(WHOLE, ()))  # both would be three tags
            with working(root, run_id, is_over=True):
                result = job.execute_in_process(
                    instance=instance,
                    asset_selection=assets,
                    tags={**tags, **shown},
                    run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
                    raise_on_error=False,
                    run_id=run_id,
                )
            if not result.success:
                from graphrag_pipeline.defs.runs.errors import failure_of

                raise failure_of(result, session.partition)

    return materialize


def _in_ranges(root: Root, selections: Mapping[str, list[AssetKey]]) -> Iterator[tuple[list[AssetKey], list[str]]]:
    """Yield assets and the partitions to run them for: neighbours with the same assets are one run of Dagster."""
    keys = [*bucket_keys(root.settings.storage.n_buckets), WHOLE]
    for assets, partitions in groupby(keys, lambda key: selections.get(key, [])):
        if assets:
            yield assets, list(partitions)


def _name_range(partitions: Sequence[str]) -> dict[str, str]:
    """Return Dagster's tags of a run of some partitions."""
    if partitions[0] == WHOLE:
        return {}
    if len(partitions) == 1:
        return {"dagster/partition": partitions[0]}
    return {"dagster/asset_partition_range_start": partitions[0], "dagster/asset_partition_range_end": partitions[-1]}
