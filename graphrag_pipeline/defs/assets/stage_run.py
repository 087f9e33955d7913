"""One run of one partition of a stage: pinned inputs in, tables and a head out, metadata for the UI.

A body registered by `stage_body` is a sentence: read this, call that step, write the result. `build_assets` makes
Dagster assets of the bodies, with everything the stage graph knows about them. Keep out: what a stage computes, and
what it depends on.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from graphrag_pipeline.defs.assets import metadata
from graphrag_pipeline.defs.assets.conditions import condition_of, freshness_policy_of
from graphrag_pipeline.defs.assets.sources import observe_what_was_read, sources_of
from graphrag_pipeline.defs.index_runs.call_pool import take_account
from graphrag_pipeline.defs.index_runs.index_run import ONLY_STALE_TAG, RECLUSTER_TAG
from graphrag_pipeline.defs.runs.loaded_code import LOADED_TAG, check_loaded_code, version_with_above
from graphrag_pipeline.defs.runs.resources import IndexRoot, book, notify, tell
from graphrag_pipeline.defs.runs.retries import RETRY_POLICY, asks_endpoint, trying_again
from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.identity import WHOLE, bucket_keys
from graphrag_pipeline.indexing.failures import failure_rows
from graphrag_pipeline.models.accounting import CallStats, booked_to
from graphrag_pipeline.models.endpoints.spans import parent_span
from graphrag_pipeline.models.pool import Progress
from graphrag_pipeline.models.ports import ChatModel, Failure
from graphrag_pipeline.pipeline.progress import PoolProgress
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, SNAPSHOT, Stage, asks_model, input_partitions, upstream_of
from graphrag_pipeline.pipeline.staleness import file_versions, owned_tables, stage_data_version, why_stale
from graphrag_pipeline.storage.locks import one_writer
from graphrag_pipeline.storage.table_store import Head, code_version_of
from graphrag_pipeline.tables import MODEL_STAGES, STAGE_TABLES


class StageRun:
    """What the body of a stage asset gets.

    Attributes:
        root: the project.
        stage: which stage.
        partition: which partition; "all" for a stage over the whole corpus.
        details: metadata the step adds to what is always shown.
        account: calls of models for this partition.
        log: writes a line to the log of the run.
        is_reclustering: communities are clustered from cold, and no report lags behind, even if they are fresh.
        is_waiting: nothing was made, because somebody pinned a snapshot; no materialization is recorded.
    """

    def __init__(
        self, root: Root, stage: Stage, partition: str, log: Callable[[str], None] = lambda line: None
    ) -> None:
        self.root = root
        self.stage = stage
        self.partition = partition
        self.settings = root.settings
        self.code = root.code_of(stage)
        self.details: dict[str, Any] = {}
        self.account = CallStats()
        self.log = log
        self.is_reclustering = False
        self.is_waiting = False
        self._heads: dict[str, list[Head]] = {}
        self._inputs: dict[str, str] = {}
        self._written: dict[str, pa.Table] = {}
        self._based_on = ""

    def pin_inputs(self) -> None:
        """Fix the version of everything that will be read; all partitions must be there."""
        self._inputs |= file_versions(self.root, self.stage)
        for table, key in input_partitions(self.stage, self.partition, self.settings):
            head = self.root.tables.need(table, key)
            self._heads.setdefault(table, []).append(head)
            self._inputs[f"{table}/{key}"] = head.data_version

    @property
    def pinned(self) -> dict[str, dict[str, Any]]:
        """What was pinned, by "table/partition", as a snapshot's manifest records it."""
        heads = (head for heads in self._heads.values() for head in heads)
        kept = ("data_version", "code_version", "inputs", "files")
        return {f"{head.table}/{head.partition}": {k: asdict(head)[k] for k in kept} for head in heads}

    @property
    def pinned_code(self) -> dict[str, dict[str, Any]]:
        """What the code versions of what was pinned stand for."""
        return {head.code_version: head.code for heads in self._heads.values() for head in heads}

    def read(self, table: str) -> pa.Table:
        """All rows of a table among `stage.reads`: this partition's, or the whole corpus'."""
        parts = [self.root.tables.read_head(head) for head in self._heads[table]]
        return pa.concat_tables(parts).combine_chunks()

    def code_behind(self, table: str) -> str:
        """Version of the code that made a table among `stage.reads`, one of the whole corpus."""
        return self._heads[table][0].code_version

    def scan(self, table: str) -> ds.Dataset:
        """Like `read`, lazily."""
        return self.root.tables.dataset(self._heads[table])

    def known(self, table: str) -> pa.Table | None:
        """Rows this stage wrote last time with the same code: what is found there need not be computed again."""
        head = self.root.tables.head(table, self.partition)
        return self.previous(table) if head and head.code_version == code_version_of(self.code) else None

    def previous(self, table: str) -> pa.Table | None:
        """Rows this stage wrote last time, with whatever code."""
        head = self.root.tables.head(table, self.partition)
        return self.root.tables.read_head(head) if head else None

    def earlier(self) -> dict[str, pa.Table] | None:
        """What this stage read and wrote last time, with the same code, by table; None if a part of it is gone."""
        store, version = self.root.tables, code_version_of(self.code)
        tables: dict[str, pa.Table | None] = {}
        inputs: list[dict[str, str]] = []
        for name in self.stage.tables:
            head = store.head(name, self.partition)
            if head is None or head.code_version != version:
                return None
            inputs.append(head.inputs)
            tables[name] = store.read_head(head)
        if any(read != inputs[0] for read in inputs):  # killed between two tables
            return None
        for name in self.stage.reads:
            tables[name] = store.read_version(name, self.partition, inputs[0].get(f"{name}/{self.partition}", ""))
        whole = {name: rows for name, rows in tables.items() if rows is not None}
        return whole if len(whole) == len(tables) else None

    def published(self, *names: str) -> list[pa.Table] | None:
        """Contract tables of the published snapshot, if they are whole and the same code made this stage's part."""
        manifest = self.root.snapshots.current_manifest()
        made = manifest.heads.get(f"{self.stage.tables[0]}/{self.partition}") if manifest else None
        if manifest is None or made is None or made["code_version"] != code_version_of(self.code):
            return None
        try:
            snapshot = self.root.snapshots.open(manifest.id)
            tables = [snapshot.table(name) for name in names]
        except NoSnapshotError:
            return None
        self._based_on = snapshot.id
        return tables

    def add_input(self, name: str, version: str) -> None:
        """Record the version of something read that is no table."""
        self._inputs[name] = version

    @property
    def asks_model(self) -> bool:
        """Whether a chat model makes the result."""
        return asks_model(self.stage, self.settings)

    @property
    def chat_model(self) -> ChatModel:
        """The model that the stage asks."""
        return self.root.models.chat_model(self.stage.engine)

    @property
    def model_name(self) -> str:
        return self.settings.chat_model_for(self.stage.engine).model

    def progress(self) -> Progress:
        """Tells the log, and who waits for the run, how far the calls of the stage are."""
        return PoolProgress(self.account, self._tell)

    def _tell(self, line: str) -> None:
        self.log(line)
        tell(f"{self.stage.name}: {line}")

    def write(self, failures: Iterable[Failure] = (), **tables: pa.Table) -> None:
        """Save every table the stage owns, in the order of `stage.tables`; that of failures comes from `failures`."""
        if self.stage.name in MODEL_STAGES:
            rows = tables[f"{self.stage.name}_failures"] = failure_rows(self.stage.name, failures)
            self.details["failures"] = rows.num_rows
        if tuple(tables) != self.stage.tables:
            raise ValueError(f"{self.stage.name} owns {self.stage.tables}, not {tuple(tables)}")
        for name, rows in tables.items():
            parts = _by_level(rows) if "level" in rows.schema.names else [rows]
            self.root.tables.write(STAGE_TABLES[name], self.partition, parts, self.code, self._inputs, self._based_on)
            self._written[name] = rows

    def write_candidate(self, snapshot_id: str) -> None:
        """Record the frozen candidate as the head of the stage."""
        version = code_version_of(self.code)
        head = Head(self.stage.name, WHOLE, (), snapshot_id, version, self.code, self._inputs)
        self.root.tables.write_head(head)

    def count_tokens(self, texts: Iterable[str] | pa.ChunkedArray) -> None:
        """Show how many tokens these texts have."""
        from graphrag_pipeline.text.tokens import count_tokens_each

        values = texts.to_pylist() if isinstance(texts, pa.ChunkedArray) else list(texts)
        self.details |= metadata.of_tokens(count_tokens_each(values, self.settings.text_units.encoding))

    def metadata(self, seconds: float) -> dict[str, Any]:
        shown = {name: rows for name, rows in self._written.items() if rows.num_rows or not name.endswith("_failures")}
        return {
            **metadata.of_tables(shown),
            "seconds": seconds,
            **metadata.of_calls(self.account),
            **metadata.of_origins(self.stage),
            **self.details,
        }

    def show_reused(self) -> None:
        """Show that nothing was made, and how many rows there are."""
        heads = [(name, self.root.tables.head(name, self.partition)) for name in owned_tables(self.stage)]
        counts = {name: head.n_rows for name, head in heads if head}
        shown = {name: n for name, n in counts.items() if n or not name.endswith("_failures")}
        self.details |= {"reused": True, **metadata.of_rows(shown)}

    def book_calls_ahead(self, is_fresh: bool = False) -> None:
        """Add the calls that were made for this partition ahead of its turn, unless it turned out to need none."""
        ahead = take_account(self.root, self.partition, self.stage.name)
        if ahead and not is_fresh:  # what was paid ahead now came from the store, and is no saving
            self.account = replace(ahead.merge(self.account), n_cached=ahead.n_cached)


def _by_level(rows: pa.Table) -> list[pa.Table]:
    """Tables kept by level have one file a level, so that an unchanged level keeps its file."""
    levels = rows["level"].combine_chunks()
    return [rows.filter(pc.equal(levels, level)) for level in sorted(set(levels.to_pylist()))] or [rows]


StageBody = Callable[[StageRun], None]
BODIES: dict[str, StageBody] = {}
"""The body of every asset, by stage."""


def stage_body(name: str) -> Callable[[StageBody], StageBody]:
    """Register the function that reads, calls a step and writes as the body of a stage's asset."""

    def register(body: StageBody) -> StageBody:
        BODIES[name] = body
        return body

    return register


def build_assets(root: Root, is_unattended: bool = True) -> list[dg.AssetsDefinition]:
    """An asset per stage, with partitions and code versions as the root's files say now.

    Args:
        is_unattended: runs of Dagster's daemon try again what a model failed at; somebody at a command line decides.
    """
    partitions = dg.StaticPartitionsDefinition(bucket_keys(root.settings.storage.n_buckets))
    assets = []
    for stage in ALL_STAGES.values():
        version = code_version_of(root.code_of(stage))
        decorate = dg.asset(
            **_asset_arguments(stage),
            code_version=version,
            op_tags={LOADED_TAG: version_with_above(root, stage)},
            partitions_def=partitions if stage.is_partitioned else None,
            freshness_policy=freshness_policy_of(stage, root.settings.schedule),
            automation_condition=condition_of(root.settings.schedule),
        )
        assets.append(decorate(_materialization(stage, is_unattended and asks_endpoint(stage, root.settings))))
    return assets


def _materialization(stage: Stage, is_retried: bool) -> Callable[..., Iterator[dg.MaterializeResult]]:
    def materialize(context: dg.AssetExecutionContext, index_root: IndexRoot) -> Iterator[dg.MaterializeResult]:
        with trying_again(context, RETRY_POLICY) if is_retried else contextlib.nullcontext():
            result = run_stage(context, index_root, stage, BODIES[stage.name])
        if result:
            yield result

    return materialize


def _asset_arguments(stage: Stage) -> dict[str, Any]:
    """Everything about an asset that the stage graph knows."""
    return {
        "name": stage.name,
        "deps": [*(other.name for other in upstream_of(stage)), *sources_of(stage)],
        "group_name": stage.group,
        "description": stage.description,
        "kinds": {"python", "lancedb" if stage.group == "publish" else "parquet"},
        "output_required": stage is not SNAPSHOT,
        "owners": ["team:graphrag"],
        "tags": {"graphrag/scope": "bucket" if stage.is_partitioned else "corpus"},
        "metadata": metadata.of_stage(stage),
    }


def run_stage(
    context: dg.AssetExecutionContext, index_root: IndexRoot, stage: Stage, body: Callable[[StageRun], None]
) -> dg.MaterializeResult | None:
    """Run a stage for the partition of the context, or say that it is fresh; None if it made nothing."""
    started = time.monotonic()
    root = index_root.open()
    partition = context.partition_key if stage.is_partitioned else WHOLE
    with contextlib.ExitStack() as held:
        held.enter_context(root.adding() if stage.is_partitioned else root.writing())
        root.tables.check_layout(root.settings.storage.n_buckets)
        run = StageRun(root, stage, partition, context.log.info)
        check_loaded_code(context, root, stage)
        if not stage.is_partitioned:
            held.enter_context(one_writer(root.path))
        is_affected = stage.name in ("communities", "community_reports")
        run.is_reclustering = is_affected and context.run.tags.get(RECLUSTER_TAG) == "true"
        is_fresh = context.run.tags.get(ONLY_STALE_TAG) == "true" and not run.is_reclustering and _is_fresh(run)
        if is_fresh:
            run.show_reused()
        else:
            run.pin_inputs()
            try:
                span = parent_span(root.settings.use_spans, f"stage {stage.name}", partition=partition)
                with booked_to(run.account), span:
                    body(run)
            finally:
                book(stage.name, run.account)
    run.book_calls_ahead(is_fresh)
    notify(stage.name, partition, is_fresh)
    if run.is_waiting:
        context.log_event(dg.AssetObservation(stage.name, metadata=run.details))
        return None
    return dg.MaterializeResult(
        data_version=dg.DataVersion(stage_data_version(root, stage, partition) or ""),
        metadata=run.metadata(round(time.monotonic() - started, 3)),
        tags=observe_what_was_read(context.instance, root, stage, partition),
    )


def _is_fresh(run: StageRun) -> bool:
    # The stage that reads the input folder cannot know without reading it.
    if not run.stage.reads and run.stage is not SNAPSHOT:
        return False
    return not why_stale(run.root, run.stage, run.partition, run.code)
