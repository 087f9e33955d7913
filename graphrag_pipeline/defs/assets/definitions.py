"""Dagster assets of the stages: their definitions, and running one partition of one.

`BODIES` lists the body of every stage. Add a stage to `pipeline/stages.py` and its body here. Keep out: the bodies.
"""

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg

from graphrag_pipeline.defs.assets import bodies
from graphrag_pipeline.defs.assets.by_workers import compute_in_parts, start_buckets, take_bucket
from graphrag_pipeline.defs.assets.ledger import report_costs
from graphrag_pipeline.defs.assets.pages import metadata
from graphrag_pipeline.defs.assets.pages.stage_pages import describe_totals
from graphrag_pipeline.defs.assets.published import with_publication
from graphrag_pipeline.defs.assets.sources import observe_what_was_read, sources_of
from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline.defs.runs.call_pool import call_stage_ahead
from graphrag_pipeline.defs.runs.errors import RETRY_POLICY, calls_endpoint, in_words, retrying
from graphrag_pipeline.defs.runs.executor import IndexRoot
from graphrag_pipeline.defs.runs.loaded_code import check_loaded_code, version_with_above
from graphrag_pipeline.defs.runs.lookup import version_tags
from graphrag_pipeline.defs.runs.naming import (
    ALLOW_REMOVAL_TAG,
    APPROVED_TAG,
    KIND_TAG,
    LISTED_TAG,
    LOADED_TAG,
    ONLY_STALE_TAG,
    RECLUSTER_TAG,
    REVIEW_TAG,
    STARTED_BY_TAG,
    WHOLE_INPUT,
    asset_key,
    group_of,
    has_option,
)
from graphrag_pipeline.defs.runs.session import IndexSession
from graphrag_pipeline.identity import WHOLE, bucket_keys
from graphrag_pipeline.inputs.files import InputFile
from graphrag_pipeline.inputs.listings import listing_version, unpack_listing
from graphrag_pipeline.inspection.costs import explain_mixture, refuse_mixed_buckets, refuse_over_budget
from graphrag_pipeline.models.accounting import paid_run
from graphrag_pipeline.models.endpoints.spans import parent_span
from graphrag_pipeline.pipeline.data_versions import stage_data_version
from graphrag_pipeline.pipeline.progress import LogObserver
from graphrag_pipeline.pipeline.prompt_texts import check_prompts, keep_prompts
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import (
    ALL_STAGES,
    CANDIDATE,
    INPUT_STAGES,
    SNAPSHOT,
    STAGES,
    Stage,
    drawn_upstream_of,
    upstream_of,
)
from graphrag_pipeline.pipeline.staleness import StalePartition, why_stale
from graphrag_pipeline.settings.section import ScheduleSettings
from graphrag_pipeline.storage.locks import one_writer
from graphrag_pipeline.workers import WorkerPool, choose_number

StageBody = Callable[[StageRun], None]

BODIES: Mapping[str, StageBody] = {name: getattr(bodies, name) for name in ALL_STAGES}
"""The body of every asset, by stage."""


def build_assets(root: Root, session: IndexSession | None = None) -> list[dg.AssetsDefinition]:
    """Return an asset per stage, with partitions and code versions as the root's files say now.

    Args:
        session: shared by the runs of an index run in this process, which fails at once when a model fails. None for
            runs that Dagster starts: those retry.
    """
    partitions = dg.StaticPartitionsDefinition(bucket_keys(root.settings.storage.n_buckets))
    index_root, assets = IndexRoot.of(root), []
    for stage in ALL_STAGES.values():
        version = version_with_above(root, stage)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dg.BetaWarning)  # backfill_policy
            decorate = dg.asset(
                **_asset_arguments(root, stage),
                code_version=version,
                op_tags={LOADED_TAG: version},
                partitions_def=partitions if stage.is_partitioned else None,
                backfill_policy=dg.BackfillPolicy.single_run() if stage.is_partitioned else None,
                freshness_policy=freshness_policy_of(stage, root.settings.schedule),
                automation_condition=condition_of(root, stage),
            )
        assets.append(decorate(_materialization(index_root, stage, session, calls_endpoint(stage, root.settings))))
    return assets


def _materialization(
    index_root: IndexRoot, stage: Stage, session: IndexSession | None, calls_endpoint: bool
) -> Callable[..., Iterator[dg.MaterializeResult | dg.AssetMaterialization]]:
    is_retried = calls_endpoint and session is None

    def materialize(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult | dg.AssetMaterialization]:
        made: dict[str, dg.MaterializeResult] = {}
        try:
            with contextlib.ExitStack() as held:
                if session is None:  # an index run reports its costs itself
                    held.callback(lambda: report_costs(context.instance, index_root.open()))
                held.enter_context(retrying(context, RETRY_POLICY) if is_retried else in_words())
                root, partitions = index_root.open(), _partitions(context, stage)
                _refuse_before_paid(context, root, stage, is_estimated=session is None)
                shared = session or held.enter_context(_own_session(context, root, stage))
                is_stale_only = context.run.tags.get(ONLY_STALE_TAG) == "true"
                start_buckets(root, stage, partitions, shared, is_stale_only)
                for partition in partitions:
                    if result := _run_stage(context, index_root, stage, partition, shared):
                        made[partition] = result
        except Exception:
            root = index_root.open()
            yield from _events(context, root, stage, made, describe_totals(root, stage))  # of the buckets that are done
            raise
        totals = describe_totals(index_root.open(), stage)
        if len(made) > 1:
            # Dagster records one result for all partitions of a run, with one version; their own events follow it.
            yield dg.MaterializeResult(metadata={"buckets of this run": len(made), **totals})
            yield from _events(context, index_root.open(), stage, made, totals)
        else:
            for result in made.values():
                yield result._replace(metadata={**totals, **(result.metadata or {})})

    return materialize


def _partitions(context: dg.AssetExecutionContext, stage: Stage) -> Sequence[str]:
    return context.partition_keys if stage.is_partitioned else [WHOLE]


@contextlib.contextmanager
def _own_session(context: dg.AssetExecutionContext, root: Root, stage: Stage) -> Iterator[IndexSession]:
    """Give a session to a run from the UI; if it has several buckets, their calls of models are made in one pool."""
    partitions, session = _partitions(context, stage), IndexSession(LogObserver(context.log.info))
    if len(partitions) > 1:
        check_loaded_code(context, root, stage)
        check_prompts(root, [stage])
        with paid_run("dagster", context.run.run_id, context.run.run_id), root.adding(partitions):
            call_stage_ahead(root, stage, partitions, session)
    with WorkerPool(choose_number()) as workers:
        yield IndexSession(pooled=session.pooled, workers=workers, listed=_listed_files(context, root, stage))


def _listed_files(context: dg.AssetExecutionContext, root: Root, stage: Stage) -> list[InputFile] | None:
    """Return the files of the run's bucket as the fan-out listed them; None without that list."""
    if stage.name not in INPUT_STAGES or LISTED_TAG not in context.run.tags or root.shared is None:
        return None
    (bucket,) = _partitions(context, stage)
    data = root.shared.read_listing(bucket)
    listed = None if data is None else unpack_listing(data, root.input_folder, root.cache_folder)
    return listed if data and listing_version(data) == context.run.tags[LISTED_TAG] else None


def _events(
    context: dg.AssetExecutionContext,
    root: Root,
    stage: Stage,
    made: Mapping[str, dg.MaterializeResult],
    totals: Mapping[str, int],
) -> Iterator[dg.AssetMaterialization]:
    """Yield the materialization of each bucket of a run, with its own data version and the totals of all buckets."""
    key, code_version = asset_key(root, stage.name), version_with_above(root, stage)
    for partition, result in made.items():
        version = result.data_version.value if result.data_version else ""
        tags = version_tags(root, context.instance, stage, version, code_version) | dict(result.tags or {})
        shown = {**totals, **(result.metadata or {})}
        yield dg.AssetMaterialization(key, partition=partition, metadata=shown, tags=tags)


def _refuse_before_paid(context: dg.AssetExecutionContext, root: Root, stage: Stage, is_estimated: bool) -> None:
    """Refuse a stage before it pays: its run could not be published, or not be finished within the budget.

    Args:
        is_estimated: compare the estimate of the run's remaining stages with the budget; an index run does so itself.

    Raises:
        PipelineError: with the way out.
    """
    selected = context.run.asset_selection or context.job_def.asset_layer.executable_asset_keys
    chosen = [other for other in STAGES.values() if asset_key(root, other.name) in selected]
    paid = [other for other in chosen if calls_endpoint(other, root.settings)]
    if not stage.is_partitioned and stage in chosen and any(not other.is_partitioned for other in paid):
        refuse_mixed_buckets(root)
    if stage.is_partitioned and stage in paid and (mixture := explain_mixture(root, stage, context.partition_keys)):
        context.log.warning(mixture)
    if is_estimated and stage in paid and root.models.spending.has_ceiling:
        from graphrag_pipeline.inspection.estimates import estimate_index

        keys = _partitions(context, stage)
        wanted = [StalePartition(each.name, key, ("asked for",)) for each in paid for key in keys]
        refuse_over_budget(root, estimate_index(root, wanted))


def _asset_arguments(root: Root, stage: Stage) -> dict[str, Any]:
    """Return everything about an asset that the stage graph knows."""
    return {
        "key": asset_key(root, stage.name),
        "deps": [
            asset_key(root, name) for name in (*(other.name for other in drawn_upstream_of(stage)), *sources_of(stage))
        ],
        "group_name": group_of(root, stage.group),
        "description": stage.description,
        "kinds": {"python", "lancedb" if stage.group == "publish" else "parquet"},
        "output_required": stage is not SNAPSHOT,
        "owners": ["team:graphrag"],
        "tags": {"graphrag/scope": "bucket" if stage.is_partitioned else "corpus"},
        "metadata": metadata.of_stage(stage),
    }


def _run_stage(
    context: dg.AssetExecutionContext, index_root: IndexRoot, stage: Stage, partition: str, session: IndexSession
) -> dg.MaterializeResult | None:
    """Run a stage for a partition unless it is fresh; return None if nothing was made."""
    started = time.monotonic()
    session.partition = partition
    root = index_root.open()
    with contextlib.ExitStack() as held:
        held.enter_context(paid_run("dagster", context.run.run_id, context.run.run_id))
        held.enter_context(root.adding(_partitions(context, stage)) if stage.is_partitioned else root.writing())
        root.tables.check_layout(root.settings.storage.n_buckets)
        run = StageRun(root, stage, partition, context.log.info, session)
        check_loaded_code(context, root, stage)
        session.observer.begin(stage.name, partition)
        if not stage.is_partitioned:
            held.enter_context(one_writer(root.path))
        is_affected = stage.name in ("communities", "community_reports")
        run.is_reclustering = is_affected and has_option(context.run.tags, RECLUSTER_TAG)
        run.allows_removal = has_option(context.run.tags, ALLOW_REMOVAL_TAG)
        run.is_reviewed = root.settings.publishing.review or has_option(context.run.tags, REVIEW_TAG)
        run.approved = context.run.tags.get(APPROVED_TAG) or ("*" if _is_chosen_by_hand(context, root) else "")
        is_stale_only = context.run.tags.get(ONLY_STALE_TAG) == "true"
        is_fresh = is_stale_only and not run.is_reclustering and _is_fresh(run)
        if is_fresh:
            run.show_reused()
        else:
            try:
                run.pin_inputs()
                if stage is CANDIDATE:
                    session.workers.stop()  # publishing needs the memory
                if not take_bucket(run) and not compute_in_parts(run):
                    with parent_span(f"stage {stage.name}", partition=partition):
                        BODIES[stage.name](run)
                keep_prompts(root, stage)
            finally:
                session.costs.book(stage.name, run.account)
    if stage is SNAPSHOT and not run.is_withheld:
        run.details = with_publication(context.instance, context.run, root, run.details)
    run.book_calls_ahead(is_fresh)
    session.observer.finish(stage.name, partition, is_fresh)
    if run.is_withheld:
        for name in (CANDIDATE.name, stage.name):
            context.log_event(dg.AssetObservation(asset_key(root, name), metadata=run.details))
        return None
    if stage is SNAPSHOT and run.approved:  # else the last that its page shows of the candidate is that it waits
        published = {"published": root.snapshots.current() or ""}
        context.log_event(dg.AssetObservation(asset_key(root, CANDIDATE.name), metadata=published))
    return dg.MaterializeResult(
        data_version=dg.DataVersion(stage_data_version(root, stage, partition) or ""),
        metadata=run.metadata(round(time.monotonic() - started + run.seconds_before, 3)),
        tags=observe_what_was_read(context.instance, root, stage, partition),
    )


def _is_chosen_by_hand(context: dg.AssetExecutionContext, root: Root) -> bool:
    """Whether a user materialized the snapshot, and nothing else, in Dagster's UI: that approves the candidate."""
    by_itself = (KIND_TAG, STARTED_BY_TAG, "dagster/sensor_name", "dagster/schedule_name", "dagster/auto_materialize",
                 "dagster/from_automation_condition")  # fmt: skip
    is_alone = context.run.asset_selection == {asset_key(root, SNAPSHOT.name)}
    return is_alone and not any(tag in context.run.tags for tag in by_itself)


def _is_fresh(run: StageRun) -> bool:
    # The stage that reads the input folder must read it to know.
    if not run.stage.reads and run.stage is not SNAPSHOT:
        return False
    return not why_stale(run.root, run.stage, run.partition, run.code)


def freshness_policy_of(stage: Stage, settings: ScheduleSettings) -> dg.FreshnessPolicy | None:
    """Return when the published snapshot counts as late; an index run that finds nothing stale confirms it."""
    if stage is not SNAPSHOT or settings.fresh_within_hours is None:
        return None
    return dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=settings.fresh_within_hours))


def condition_of(root: Root, stage: Stage) -> dg.AutomationCondition | None:
    """Return a condition that runs a partition once an input has another data version; equal content starts nothing.

    A changed code version starts nothing, because a changed prompt would spend money unattended. A partition waits
    while any input is outdated or running, so that it never reads half a change. An input is a stage that is read, also
    without a drawn edge, and not `whole_input`, which only marks a stage in the UI.
    """
    if not root.settings.schedule.follow_data:
        return None
    marks = dg.AssetSelection.assets(asset_key(root, WHOLE_INPUT))
    drawn = drawn_upstream_of(stage)
    undrawn = [asset_key(root, other.name) for other in upstream_of(stage) if other not in drawn]

    def any_input(condition: dg.AutomationCondition) -> dg.AutomationCondition:
        found: dg.AutomationCondition = dg.AutomationCondition.any_deps_match(condition).ignore(marks)
        for key in undrawn:
            found |= dg.AutomationCondition.asset_matches(key, condition)
        return found

    condition = dg.AutomationCondition
    is_changed = condition.data_version_changed()
    is_outdated = condition.any_deps_match(is_changed).ignore(marks).since(condition.newly_updated())
    is_missing = condition.missing() & ~condition.will_be_requested()
    is_running = condition.in_progress()
    return (
        any_input(is_changed).since_last_handled() & ~any_input(is_outdated | is_missing | is_running) & ~is_running
    ).with_label("an input has other data")
