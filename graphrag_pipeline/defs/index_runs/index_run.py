"""Indexing in one process: find what is stale, materialise it through Dagster, publish.

The same assets run as in the UI, so runs, events and metadata show there. Keep out: what is stale (see
`staleness.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.defs.assets.published import confirm_published
from graphrag_pipeline.defs.index_runs.refusals import (
    refuse_empty,
    refuse_import,
    refuse_other_corpus,
    refuse_unreadable_gold,
)
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.defs.runs.live import end_dead_runs, host_tags, working
from graphrag_pipeline.defs.runs.records import prune_runs, report_missing_events
from graphrag_pipeline.errors import InputChangedError, PipelineError
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.pipeline.staleness import (
    StalePartition,
    detect_input,
    find_stale,
    find_waiting,
    list_notes,
    list_problems,
)
from graphrag_pipeline.storage.locks import one_index_run

if TYPE_CHECKING:
    from dagster import DagsterInstance, ExecuteInProcessResult
    from dagster._utils.error import SerializableErrorInfo

ONLY_STALE_TAG = "graphrag/only_stale"
"""Run tag: a partition that turns out to be fresh, because what is above it came out equal, is not computed again."""

RECLUSTER_TAG = "graphrag/recluster"
"""Run tag: communities are clustered from cold, whatever was published."""

_MAX_ATTEMPTS = 3
"""How often files that change while they are read are read again."""

_DISK_ERRORS = ("No space left on device", "Read-only file system", "Permission denied", "Disk quota exceeded")
_INTERRUPTED = "DagsterExecutionInterruptedError"
"""Dagster turns both Ctrl-C and SIGTERM into this one while a stage runs."""

Listener = Callable[[str, str, bool], None]


@dataclass(frozen=True)
class IndexReport:
    """What `index` did.

    Attributes:
        ran: (stage, partition) computed.
        reused: (stage, partition) that turned out fresh once what is above them had run.
        n_documents: readable documents in the input folder.
        problems: (path, problem) of documents that could not be read.
        notes: (path, note) of documents that were read although something was odd about them.
        snapshot: id of the published snapshot.
        waiting: id of the candidate that is not published because another snapshot is pinned; None without one.
    """

    ran: list[tuple[str, str]]
    reused: list[tuple[str, str]]
    n_documents: int
    problems: list[tuple[str, str]]
    notes: list[tuple[str, str]]
    snapshot: str
    waiting: str | None = None


def run_index(
    root: Root,
    on_plan: Callable[[list[StalePartition]], None] | None = None,
    listener: Listener | None = None,
    say: Callable[[str], None] = lambda line: None,
    allow_empty: bool = False,
    tags: Mapping[str, str] | None = None,
    is_reclustering: bool = False,
    allow_removal: bool = False,
) -> IndexReport:
    """Bring the index of a root up to date and publish it, unless a snapshot is pinned.

    Args:
        on_plan: told what is stale before anything runs.
        listener: told of every stage that ends.
        say: told in words what calls of models are estimated to cost, and how far they are.
        allow_empty: an input folder without a readable document is meant so: an empty index is published.
        tags: of Dagster's runs, beside those which say what is computed.
        is_reclustering: communities are clustered from cold, also where nothing changed.
        allow_removal: documents that the shared store's index has and the input folder has not are to go, although this
            root has never indexed there.

    Raises:
        PipelineError: a stage or check failed, no document is readable, or the root holds an imported index; what was
            finished is kept and the published snapshot stays.
        KeyboardInterrupt: Ctrl-C, or SIGTERM while a stage ran; likewise.
    """
    tags = {**(tags or {}), ONLY_STALE_TAG: "true", **({RECLUSTER_TAG: "true"} if is_reclustering else {})}
    with one_index_run(root.path), root.writing():
        if allow_removal and root.shared:
            root.shared.join()
        return _run_index(root, on_plan, listener, say, allow_empty, tags)


def run_stages(
    root: Root,
    stages: Iterable[str],
    listener: Listener | None = None,
    say: Callable[[str], None] = lambda line: None,
    tags: Mapping[str, str] | None = None,
) -> None:
    """Compute some stages anew in every bucket, stale or not; replies and vectors of models that are stored are taken.

    Raises:
        PipelineError: a stage or check failed, or what a stage reads was never made.
    """
    with one_index_run(root.path), root.writing():
        refuse_import(root)
        root.tables.check_layout(root.settings.storage.n_buckets)
        chosen = [ALL_STAGES[name] for name in ALL_STAGES if name in set(stages)]
        wanted = [StalePartition(s.name, key, ("asked for",)) for s in chosen for key in s.partitions(root.settings)]
        _materialize(root, wanted, listener or (lambda stage, partition, is_fresh: None), say, tags or {})
        report_missing_events(root)


def _run_index(
    root: Root,
    on_plan: Callable[[list[StalePartition]], None] | None,
    listener: Listener | None,
    say: Callable[[str], None],
    allow_empty: bool,
    tags: Mapping[str, str],
) -> IndexReport:
    ran: list[tuple[str, str]] = []
    reused: list[tuple[str, str]] = []

    def listen(stage: str, partition: str, is_fresh: bool) -> None:
        (reused if is_fresh else ran).append((stage, partition))
        if listener:
            listener(stage, partition, is_fresh)

    for attempt in range(1, _MAX_ATTEMPTS + 1):
        manifests = detect_input(root)
        problems = list_problems(manifests)
        n_documents = sum(rows.num_rows for rows in manifests.values()) - len(problems)
        refuse_import(root)
        if not n_documents and not allow_empty:
            refuse_empty(root, problems)
        if root.shared and not root.shared.is_joined:
            refuse_other_corpus(root, root.shared, manifests)
            root.shared.join()
        root.tables.check_layout(root.settings.storage.n_buckets)
        stale = find_stale(root, manifests, ["communities"] if RECLUSTER_TAG in tags else [])
        if stale:
            refuse_unreadable_gold(root)
        if on_plan:
            on_plan(stale)
        try:
            _materialize(root, stale, listen, say, tags)
            break
        except InputChangedError:
            if attempt == _MAX_ATTEMPTS:
                raise
    report_missing_events(root)
    prune_runs(root)
    waiting = find_waiting(root)
    if not ran and not waiting:
        confirm_published(root)
    current, notes = root.snapshots.current() or "", list_notes(manifests)
    return IndexReport(ran, reused, n_documents, problems, notes, current, waiting)


def _materialize(
    root: Root, stale: list[StalePartition], listener: Listener, say: Callable[[str], None], tags: Mapping[str, str]
) -> None:
    """Run what is stale: buckets one by one, their calls of models in one pool, then the rest.

    Raises:
        BaseException: the first failure.
    """
    if not stale:
        return
    from graphrag_pipeline.defs.index_runs.call_pool import ask_ahead, pooled_stages
    from graphrag_pipeline.defs.index_runs.costs import costs_kept
    from graphrag_pipeline.defs.runs.resources import listening, telling

    whole = [item for item in stale if item.partition == WHOLE]
    pooled = pooled_stages(root)
    buckets = [item for item in stale if item.partition != WHOLE]
    first = [item for item in buckets if item.stage not in pooled]
    second = [item for item in buckets if item.stage in pooled]
    with open_instance(root) as instance, listening(listener), telling(say), costs_kept(root, say) as estimate:
        end_dead_runs(instance, root)
        materialize = _materializer(root, instance, {**tags, **host_tags()})
        materialize(first)
        estimate([*second, *whole])
        ask_ahead(root, sorted({item.partition for item in second}), say)
        materialize(second)
        materialize(whole)


def _materializer(
    root: Root, instance: DagsterInstance, tags: Mapping[str, str]
) -> Callable[[list[StalePartition]], None]:
    """Runs stale partitions, one Dagster run per bucket; raises the first failure."""
    import dagster as dg
    from dagster._core.utils import make_new_run_id

    from graphrag_pipeline.defs.build import build_index_definitions

    job = build_index_definitions(root).resolve_implicit_global_asset_job_def()

    def materialize(stale: list[StalePartition]) -> None:
        selections: dict[str, list[dg.AssetKey]] = {}
        for item in stale:
            selections.setdefault(item.partition, []).append(dg.AssetKey(item.stage))
        for partition in sorted(selections):
            run_id = make_new_run_id()
            with working(root, run_id, is_over=True):
                result = job.execute_in_process(
                    instance=instance,
                    partition_key=None if partition == WHOLE else partition,
                    asset_selection=selections[partition],
                    tags=dict(tags),
                    run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
                    raise_on_error=False,
                    run_id=run_id,
                )
            if not result.success:
                raise _failure_of(result, partition)

    return materialize


def _failure_of(result: ExecuteInProcessResult, partition: str) -> BaseException:
    """Why a run failed, in one line: a `PipelineError`, or a `KeyboardInterrupt` if it was stopped."""
    for event in result.all_events:
        if event.event_type_value == "PIPELINE_CANCELED":
            return KeyboardInterrupt()
        if event.event_type_value == "ASSET_CHECK_EVALUATION" and not event.asset_check_evaluation_data.passed:
            check = event.asset_check_evaluation_data
            return PipelineError(
                f"check {check.check_name} of {check.asset_key.to_user_string()} failed: {check.description}; "
                "the published snapshot stays"
            )
        if event.is_step_failure:
            where = str(event.step_key) if partition == WHOLE else f"{event.step_key}, bucket {partition}"
            return explain_error(where, event.step_failure_data.error)
        if event.is_failure:
            return explain_error(f"run {result.run_id}", event.job_failure_data.error)
    return PipelineError(f"run {result.run_id} failed without a reason; see it in `graphrag-pipeline dev`")


def explain_error(where: str, error: SerializableErrorInfo | None) -> BaseException:
    """The first error of ours among the causes, else the last cause."""
    ours = _our_errors()
    while error and error.cause and error.cls_name not in ours:
        error = error.cause
    if error is None:
        return PipelineError(f"{where} failed without a reason; see the run in `graphrag-pipeline dev`")
    if error.cls_name == _INTERRUPTED:
        return KeyboardInterrupt()
    message = " ".join(error.message.split("\n")).strip()
    if error.cls_name in ours:
        return ours[error.cls_name](f"{where} failed: {message.partition(': ')[2]}")
    if any(reason in message for reason in _DISK_ERRORS):
        way_out = "free space or mend permissions and run again - what was finished is kept"
    else:
        way_out = "its traceback is in the last run shown by `graphrag-pipeline dev`"
    return PipelineError(f"{where} failed: {message}; {way_out}")


def _our_errors() -> dict[str, type[PipelineError]]:
    """`PipelineError` and everything that is one, by name; one that is not made of a message alone as the former."""
    found, waiting = {}, [PipelineError]
    while waiting:
        error = waiting.pop()
        found[error.__name__] = error if error.__init__ is PipelineError.__init__ else PipelineError
        waiting += error.__subclasses__()
    return found
