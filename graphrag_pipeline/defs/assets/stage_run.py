"""One run of one partition of a stage: pinned inputs in, tables and a head out, metadata for the UI.

A stage's body gets a `StageRun` and is a sentence: read these tables, call that step, write the result. Keep out: what
a stage computes, and Dagster's definitions of it (`definitions.py`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from graphrag_pipeline.arrow_columns import join_rows
from graphrag_pipeline.defs.assets.pages import metadata
from graphrag_pipeline.defs.assets.pages.stage_contents import StageContents
from graphrag_pipeline.defs.assets.pages.stage_pages import describe_contents
from graphrag_pipeline.defs.runs.session import IndexSession
from graphrag_pipeline.errors import NoSnapshotError
from graphrag_pipeline.identity import WHOLE, text_hash
from graphrag_pipeline.indexing.failures import failure_rows
from graphrag_pipeline.inputs.source_records import SourceRecord
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.models.pool import Progress
from graphrag_pipeline.models.ports import ChatModel, Failure
from graphrag_pipeline.pipeline.data_versions import file_versions
from graphrag_pipeline.pipeline.progress import PoolProgress
from graphrag_pipeline.pipeline.prompt_texts import check_prompts
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stage_code import uses_chat_model
from graphrag_pipeline.pipeline.stages import Stage, input_partitions
from graphrag_pipeline.storage.table_store import Head, code_version_of
from graphrag_pipeline.tables import MODEL_STAGES, STAGE_TABLES

Rows: TypeAlias = pa.Table | Iterator[pa.Table]
"""A table, or the slices of one in file order, which are made while they are written."""


class StageRun:
    """The argument of a stage's body.

    Attributes:
        root: the project; its models count their calls in `account` and in the accounts of the session.
        stage: the stage.
        partition: the partition; "all" for a stage over the whole corpus.
        details: metadata the step adds to what is always shown.
        account: calls of models for this partition.
        log: writes a line to the log of the run.
        session: what the runs of one index run share; a session without pooled calls if None is given.
        is_reclustering: cluster communities from cold and defer no report, even if they are fresh.
        allows_removal: publish although many published documents are gone.
        is_withheld: nothing was published, since a snapshot is pinned or the candidate waits for review; no
            materialization is recorded.
        is_reviewed: whether a candidate waits until it is approved.
        approved: id of the candidate that a reviewer publishes; "*" for any that is not rejected.
        part: (number, count) of the part of the corpus to compute; (0, 1) is all of it.
        seconds_before: how long a worker computed it, before its own step.
    """

    def __init__(
        self,
        root: Root,
        stage: Stage,
        partition: str,
        log: Callable[[str], None] = lambda line: None,
        session: IndexSession | None = None,
    ) -> None:
        self.session = session or IndexSession()
        self.account = CallStats()
        self.root = root.counted_in(self.account, *self.session.accounts)
        self.stage = stage
        self.partition = partition
        self.settings = root.settings
        check_prompts(root, [stage])
        self.code = root.code_of(stage)
        self.details: dict[str, Any] = {}
        self.log = log
        self.is_reclustering = False
        self.allows_removal = False
        self.is_withheld = False
        self.is_reviewed = False
        self.approved = ""
        self.part = (0, 1)
        self.seconds_before = 0.0
        self._heads: dict[str, list[Head]] = {}
        self._inputs: dict[str, str] = {}
        self._written: Mapping[str, pa.Table] = {}
        self._based_on = ""

    def pin_inputs(self) -> None:
        """Fix the version of everything that will be read; all partitions must exist."""
        self._inputs |= file_versions(self.root, self.stage)
        for table, key in input_partitions(self.stage, self.partition, self.settings):
            head = self.root.tables.need(table, key)
            self._heads.setdefault(table, []).append(head)
            self._inputs[f"{table}/{key}"] = head.data_version

    @property
    def inputs(self) -> dict[str, str]:
        """Version of everything that is pinned, by name."""
        return dict(self._inputs)

    @property
    def n_rows_read(self) -> int:
        """Number of rows of all tables that are pinned."""
        return sum(head.n_rows for heads in self._heads.values() for head in heads)

    @property
    def pinned(self) -> dict[str, dict[str, Any]]:
        """Pinned heads by "table/partition", as a snapshot's manifest records them."""
        heads = (asdict(head) for heads in self._heads.values() for head in heads)
        kept = ("data_version", "code_version", "inputs", "files")
        return {f"{head['table']}/{head['partition']}": {name: head[name] for name in kept} for head in heads}

    @property
    def pinned_code(self) -> dict[str, dict[str, Any]]:
        """The code behind each code version of the pinned heads."""
        return {head.code_version: head.code for heads in self._heads.values() for head in heads}

    def read_input(self) -> Iterator[SourceRecord]:
        """Yield the documents and problems of the partition in the input folder; it is listed once in a session."""
        return self.root.read_input({self.partition}, self.session.listed)

    def read(self, table: str, without: Sequence[str] = ()) -> pa.Table:
        """Return all rows of a table among `stage.reads`: of this partition, or of the whole corpus.

        Args:
            without: columns that are not read.
        """
        parts = [self.root.tables.read_head(head, without) for head in self._heads[table]]
        return join_rows(parts, pa.schema([field for field in STAGE_TABLES[table].schema if field.name not in without]))

    def read_described(self, table: str) -> pa.Table:
        """Return `read` without the descriptions of single mentions, the largest column, which are summarized."""
        return self.read(table, without=("descriptions",) if "descriptions" in STAGE_TABLES[table].schema.names else ())

    def code_behind(self, table: str) -> str:
        """Return the version of the code that made an unpartitioned table among `stage.reads`."""
        return self._heads[table][0].code_version

    def scan(self, table: str) -> ds.Dataset:
        """Return what `read` returns, as a lazy dataset."""
        return self.root.tables.dataset(self._heads[table])

    def known(self, table: str) -> pa.Table | None:
        """Return the rows that this stage wrote last time with the same code: they need not be computed again."""
        head = self.root.tables.head(table, self.partition)
        return self.previous(table) if head and head.code_version == code_version_of(self.code) else None

    def paid(self, table: str, option: str) -> pa.Table | None:
        """Return the rows that a model wrote last time with the same code apart from an option that saves calls."""
        head = self.root.tables.head(table, self.partition)
        if head is None or {**head.code, option: ""} != {**self.code, option: ""}:
            return None
        rows = self.root.tables.read_head(head)
        return rows.filter(rows["request_key"].is_valid())

    def previous(self, table: str) -> pa.Table | None:
        """Return the rows that this stage wrote last time, with any code."""
        head = self.root.tables.head(table, self.partition)
        return self.root.tables.read_head(head) if head else None

    def earlier(self) -> dict[str, pa.Table] | None:
        """Return the tables this stage read and wrote last time with the same code; None if one is gone."""
        store, version = self.root.tables, code_version_of(self.code)
        tables: dict[str, pa.Table | None] = {}
        inputs: list[dict[str, str]] = []
        for name in self.stage.tables:
            head = store.head(name, self.partition)
            if head is None or head.code_version != version:
                return None
            inputs.append(head.inputs)
            tables[name] = store.read_head(head)
        if any(read != inputs[0] for read in inputs):  # the run was killed between two tables
            return None
        for name in self.stage.reads:
            tables[name] = store.read_version(name, self.partition, inputs[0].get(f"{name}/{self.partition}", ""))
        whole = {name: rows for name, rows in tables.items() if rows is not None}
        return whole if len(whole) == len(tables) else None

    def published(self, *names: str) -> list[pa.Table] | None:
        """Return contract tables of the published snapshot, if it is whole and the same code made this stage's part."""
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

    def frozen_before(self, names: Iterable[str]) -> dict[str, pa.Table]:
        """Return contract tables that this stage froze last time with the same code; {} if a file is not whole."""
        head = self.root.tables.head(self.stage.name)
        if head is None or head.code_version != code_version_of(self.code):
            return {}
        try:
            snapshot = self.root.snapshots.open(head.data_version)
            return {name: snapshot.checked_table(name) for name in names}
        except NoSnapshotError:
            return {}

    def add_input(self, name: str, version: str) -> None:
        """Record the version of an input that is not a table."""
        self._inputs[name] = version

    @property
    def uses_chat_model(self) -> bool:
        """Whether a chat model makes the result."""
        return uses_chat_model(self.stage, self.settings)

    @property
    def chat_model(self) -> ChatModel:
        """The chat model of the stage."""
        return self.root.models.chat_model(self.stage.engine)

    @property
    def model_name(self) -> str:
        return self.settings.chat_model_for(self.stage.engine).model

    def progress(self) -> Progress:
        """Return a progress that reports the stage's calls to the log and to the observer of the session."""
        return PoolProgress(self.account, self._report)

    def _report(self, line: str) -> None:
        self.log(line)
        self.session.observer.progress(f"{self.stage.name}: {line}")

    def embed_stored(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the vectors of texts by hash, requested where they are not stored; without those that failed."""
        embedder = self.root.models.embedder
        found = embedder.read_stored({text_hash(text): text for text in texts})
        missing = [text for text in texts if text_hash(text) not in found]
        if missing:
            vectors, _ = embedder.try_embed(missing)
            found |= {text_hash(text): vector for text, vector in zip(missing, vectors, strict=True) if vector.any()}
        return found

    def write(self, failures: Iterable[Failure] = (), **tables: Rows) -> None:
        """Save every table that the stage owns, in the order of `stage.tables`; the failures make their own table."""
        if self.stage.name in MODEL_STAGES:
            rows = tables[f"{self.stage.name}_failures"] = failure_rows(self.stage.name, failures)
            self.details["records that the model failed at"] = rows.num_rows
        if tuple(tables) != self.stage.tables:
            raise ValueError(f"{self.stage.name} owns {self.stage.tables}, not {tuple(tables)}")
        self.save(tables)

    def save(self, tables: Mapping[str, Rows]) -> None:
        """Write the tables of the stage, with their heads."""
        for name, rows in tables.items():
            parts = _by_level(rows) if isinstance(rows, pa.Table) and "level" in rows.schema.names else [rows]
            self.root.tables.write(STAGE_TABLES[name], self.partition, parts, self.code, self._inputs, self._based_on)
        self._written = {name: rows for name, rows in tables.items() if isinstance(rows, pa.Table)}

    def write_candidate(self, snapshot_id: str) -> None:
        """Record the frozen candidate as the head of the stage."""
        version = code_version_of(self.code)
        head = Head(self.stage.name, WHOLE, (), snapshot_id, version, self.code, self._inputs)
        self.root.tables.write_head(head)

    def count_problems(self, problems: Mapping[str, int]) -> None:
        """Add the parts of replies that were left out or repaired, by reason, to the metadata and the log of costs."""
        self.details |= metadata.of_counts("records repaired or skipped", problems)
        self.session.costs.problems.setdefault(self.stage.name, Counter()).update(problems)

    def metadata(self, seconds: float) -> dict[str, Any]:
        """Return everything that the UI shows of this run: the tables, the time, calls of models, and the details.

        Args:
            seconds: time since the partition started.
        """
        own = {
            "seconds to make it": seconds,
            **metadata.of_calls(self.account),
            **metadata.of_origins(self.stage, self.root.key_prefix),
        }
        contents = describe_contents(StageContents(self.root, self.stage, self.partition, self._written))
        return {**contents, **self.details, **own, **self.details}  # the details come before `own`, and win

    def show_reused(self) -> None:
        """Note in the metadata that nothing was computed; the tables are shown as if they had just been made."""
        self.details["reused"] = True

    def book_calls_ahead(self, is_fresh: bool = False) -> None:
        """Add the calls that were made for this partition ahead of its turn, unless it turned out to be fresh."""
        ahead = self.session.pooled.take_account(self.partition, self.stage.name)
        if ahead and not is_fresh:  # replies paid ahead now come from the cache, which is not a saving
            self.account = replace(ahead.merge(self.account), n_cached=ahead.n_cached)


def _by_level(rows: pa.Table) -> list[pa.Table]:
    """Split a table that has levels into one file a level, so that an unchanged level keeps its file."""
    levels = rows["level"].combine_chunks()
    return [rows.filter(pc.equal(levels, level)) for level in sorted(set(levels.to_pylist()))] or [rows]
