"""Roots for tests: small real projects on disk, and runs of their stages without Dagster's records."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.pipeline.data_versions import owned_tables
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.root import Root, init_root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, STAGES
from graphrag_pipeline.pipeline.staleness import StalePartition, find_stale

if TYPE_CHECKING:
    from graphrag_pipeline.query.index.graph_index import GraphIndex

CAROL = {
    "one.txt": "Marley was dead, to begin with. Old Scrooge signed the register. Everyone knew that Scrooge and Marley "
    "were partners. It was clear to the clerk, Bob Cratchit, that Scrooge missed Marley.",
    "two.txt": "The clerk in the tank was Bob Cratchit. That night Bob Cratchit carried Tiny Tim home. They say that "
    "Tiny Tim blessed Scrooge, and Bob Cratchit wept.",
    "three.md": "# The Ball\n\nAt the ball old Fezziwig danced with Mrs. Fezziwig. Young Scrooge watched Fezziwig and "
    "the clerks. In those days Scrooge loved Belle, and Belle loved Scrooge.",
}
"""Three documents with names that meet across them."""

TWO_BUCKETS = "storage:\n  n_buckets: 2\n"

BUILT_ROOTS = "TESTS_BUILT_ROOTS"
"""The variable with the folder of roots that are built once; conftest.py makes it."""

MAX_ROUNDS = 3
"""Most runs of a partition until everything is up to date."""

GOING_ON = ("communities", "community_reports", "report_embeddings")
"""Stages whose tables continue the published ones, so a rebuild may differ."""


def make_root(path: Path, documents: Mapping[str, str] = CAROL, settings: str = TWO_BUCKETS) -> Root:
    """A root with these documents and settings."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "settings.yaml").write_text(settings, encoding="utf-8")
    init_root(path)
    for name, text in documents.items():
        put(path, name, text)
    return Root(path)


def built_root(
    path: Path,
    documents: Mapping[str, str] = CAROL,
    settings: str = TWO_BUCKETS,
    stages: Iterable[str] = tuple(STAGES),
) -> Root:
    """`make_root` and `build_tables`, done once in a run of tests and copied from then on.

    For tests to which the root is where they start. A test of what building does must build.
    """
    names = tuple(stages)
    key = json.dumps([list(documents.items()), settings, names])
    return built_once(path, key, lambda folder: build_tables(make_root(folder, documents, settings), names))


def indexed_root(path: Path, documents: Mapping[str, str] = CAROL, settings: str = TWO_BUCKETS) -> Root:
    """`make_root` and an index run through Dagster with its records, done once in a run of tests and copied."""
    from graphrag_pipeline.defs.index_runs.index_run import run_index

    key = json.dumps([list(documents.items()), settings, "through Dagster"])
    return built_once(path, key, lambda folder: run_index(make_root(folder, documents, settings)))


def built_once(path: Path, key: str, build: Callable[[Path], object]) -> Root:
    """Copy a root from the folder that all workers of a run share; the first that wants it builds it there.

    Args:
        key: tells it from other roots.
        build: makes it in a folder that does not exist.
    """
    if BUILT_ROOTS not in os.environ:  # a script, not a test
        build(path)
        return Root(path)
    folder, name = Path(os.environ[BUILT_ROOTS]), hashlib.sha256(key.encode()).hexdigest()[:20]
    with FileLock(folder / f"{name}.lock"):
        if not (folder / name).exists():
            shutil.rmtree(folder / f"{name}.new", ignore_errors=True)  # of a build that failed
            build(folder / f"{name}.new")
            (folder / f"{name}.new").rename(folder / name)
    shutil.copytree(folder / name, path, dirs_exist_ok=True)
    return Root(path)


def put(path: Path, name: str, text: str) -> None:
    """Write a document of the input folder."""
    file = path / "input" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def open_built(path: Path, documents: Mapping[str, str] = CAROL) -> GraphIndex:
    """Open the index of documents that was built without Dagster."""
    from graphrag_pipeline.query.index.graph_index import GraphIndex

    return GraphIndex.open(built_root(path, documents, stages=ALL_STAGES).path)


def build_tables(
    root: Root, stages: Iterable[str] = tuple(STAGES), partitions: Collection[str] | None = None
) -> list[tuple[str, str]]:
    """Update stages through their real bodies and the real store, without Dagster; return the partitions that ran.

    Args:
        partitions: to update; all if None.

    Raises:
        RuntimeError: a partition stays stale after its last run.
    """
    from graphrag_pipeline.defs.assets.definitions import BODIES
    from graphrag_pipeline.defs.assets.stage_run import StageRun

    ran: list[tuple[str, str]] = []
    wanted = set(stages)
    while stale := [item for item in find_stale(root, detect_input(root)) if item.stage in wanted]:
        stale = [item for item in stale if (item.stage, item.partition) not in ran or not _only_failed(item)]
        stale = [item for item in stale if partitions is None or item.partition in partitions]
        if not stale:
            break
        for item in stale:
            if ran.count((item.stage, item.partition)) >= MAX_ROUNDS:
                raise RuntimeError(
                    f"{item.stage}, {item.partition}: ran {MAX_ROUNDS} times and is stale: {item.reasons}"
                )
            run = StageRun(root, ALL_STAGES[item.stage], item.partition)
            run.pin_inputs()
            BODIES[item.stage](run)
            ran.append((item.stage, item.partition))
    return ran


def recluster(root: Root) -> None:
    """Cluster communities from cold, as `index --recluster` does, and update the later stages."""
    from graphrag_pipeline.defs.assets.definitions import BODIES
    from graphrag_pipeline.defs.assets.stage_run import StageRun

    for stage in ("communities", "community_reports"):
        run = StageRun(root, STAGES[stage], WHOLE)
        run.is_reclustering = True
        run.pin_inputs()
        BODIES[stage](run)
    build_tables(root, ALL_STAGES)


def _only_failed(item: StalePartition) -> bool:
    """Return whether only failed model calls are left to do."""
    return all("failures to try again" in reason for reason in item.reasons)


def table_bytes(root: Root, stages: Iterable[str] = tuple(STAGES)) -> dict[str, list[bytes]]:
    """The Parquet bytes behind every head of some stages, by "table/partition"."""
    contents = {}
    for name in stages:
        stage = ALL_STAGES[name]
        for partition in stage.partitions(root.settings):
            for table in owned_tables(stage):
                head = root.tables.need(table, partition)
                contents[f"{table}/{partition}"] = [path.read_bytes() for path in root.tables.paths(head)]
    return contents


def contract_bytes(root: Root) -> dict[str, bytes]:
    """The Parquet bytes of the published contract tables."""
    snapshot = root.snapshots.open()
    return {name: snapshot.table_path(name).read_bytes() for name in snapshot.manifest.tables}
