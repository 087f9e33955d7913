"""Machines that share a store: one root each with the same settings, updated without Dagster's records.

Also events between machines: a failed push, a waiting writer.
"""

from __future__ import annotations

import functools
import shutil
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

import dagster as dg
import pytest

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.errors import StoreError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.storage.shared.lease import Lease
from graphrag_pipeline.storage.shared.objects import open_object_store
from graphrag_pipeline.storage.shared.state import OWNED, NumberedStates, StoreState
from graphrag_pipeline_tests.support.object_server import ObjectServer
from graphrag_pipeline_tests.support.roots import CAROL, build_tables, built_once, built_root, make_root, put


def settings_for(url: str, n_buckets: int = 2, **more: object) -> str:
    lines = [f"  {key}: {value}\n" for key, value in {"n_buckets": n_buckets, "url": url, "lease_s": 3, **more}.items()]
    return "storage:\n" + "".join(lines)


def machine(path: Path, url: str, documents: Mapping[str, str] = CAROL, **more: object) -> Root:
    """A root with its documents, whose index is in a store."""
    return make_root(path, documents, settings_for(url, **more))


def reader(path: Path, url: str, **more: object) -> Root:
    """Make a root with settings only."""
    path.mkdir(parents=True)
    (path / "settings.yaml").write_text(settings_for(url, **more), encoding="utf-8")
    return Root(path)


def build_ahead(root: Root, name: str, text: str) -> None:
    """Write a document of a machine that the fixture `indexed` made, with the tables that its update gives.

    They are built once in a run of tests, without the store; the next `index` has only to publish them there.
    """

    def build(folder: Path) -> None:
        updated = built_root(folder, stages=ALL_STAGES)
        put(folder, name, text)
        build_tables(updated, ALL_STAGES)
        for place in folder.iterdir():
            if place.name not in ("tables", "heads", "snapshots"):
                shutil.rmtree(place) if place.is_dir() else place.unlink()

    put(root.path, name, text)
    built_once(root.path, f"three documents and {name}: {text}", build)


def again(root: Root) -> Root:
    """The root as the next command opens it."""
    return Root(root.path)


def index(root: Root, stages: Iterable[str] = tuple(ALL_STAGES)) -> list[tuple[str, str]]:
    """Update a root as the writer; return the partitions that ran."""
    opened = again(root)
    with opened.writing():
        return build_tables(opened, stages)


@functools.lru_cache(maxsize=1)
def job_of(path: str, name: str) -> dg.JobDefinition:
    """Return a job of a root, as a process that Dagster starts builds it, which asks for it several times."""
    return build_definitions(Root(Path(path))).resolve_job_def(name)


def run_job(root: Root, name: str, tags: Mapping[str, str]) -> bool:
    """Run a job with its own executor, as a worker of the run queue does; return whether Dagster calls it a success."""
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    job_of.cache_clear()  # each run reads the settings as they are now
    job = dg.build_reconstructable_job(__name__, "job_of", (str(root.path), name))
    with open_instance(root) as instance:
        return dg.execute_job(job, instance, run_config=quiet, tags=dict(tags), raise_on_error=False).success


def state_of(url: str) -> StoreState:
    """Return the newest state of a store."""
    state = NumberedStates(open_object_store(url)).latest()
    assert state is not None
    return state


def object_names(url: str) -> set[str]:
    """Return the names of a store's files and folders of snapshots and stages."""
    return {name for folder in OWNED for name in open_object_store(url).names(folder)}


def opened_snapshot(root: Root) -> str:
    """Return the id of the snapshot that a search of a root opens."""
    with GraphIndex.open(root.path) as opened:
        return opened.snapshot.id


def fail_to_push(root: Root, s3: ObjectServer, part: str, stages: Iterable[str] = tuple(ALL_STAGES)) -> None:
    """Index while the server refuses each path that contains `part`."""
    s3.fault = lambda method, path: 500 if method == "PUT" and part in path else None
    with pytest.raises(StoreError):
        index(root, stages)
    s3.fault = None


def check_that_second_waits(first: Lease, second: Lease, seconds: float) -> None:
    """Assert that a second holder gets a lease only after its release; release both."""
    first.acquire()
    got_it = threading.Event()
    waiting = threading.Thread(target=lambda: (second.acquire(), got_it.set()))
    waiting.start()
    assert not got_it.wait(seconds)
    first.check()
    first.release()
    assert got_it.wait(20)
    second.check()
    second.release()
    waiting.join()
