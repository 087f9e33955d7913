"""Machines that share a store: a root each with the same settings, brought up to date without Dagster's bookkeeping.

And what happens between them: a push that fails, a writer that waits.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from graphrag_pipeline.errors import StoreError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.storage.shared.lease import Lease
from graphrag_pipeline_tests.support.object_server import ObjectServer
from graphrag_pipeline_tests.support.roots import CAROL, build_tables, make_root


def settings_for(url: str, n_buckets: int = 2, **more: object) -> str:
    lines = [f"  {key}: {value}\n" for key, value in {"n_buckets": n_buckets, "url": url, "lease_s": 3, **more}.items()]
    return "storage:\n" + "".join(lines)


def machine(path: Path, url: str, documents: Mapping[str, str] = CAROL, **more: object) -> Root:
    """A root with its documents, whose index is in a store."""
    return make_root(path, documents, settings_for(url, **more))


def reader(path: Path, url: str, **more: object) -> Root:
    """A root with nothing but settings."""
    path.mkdir(parents=True)
    (path / "settings.yaml").write_text(settings_for(url, **more), encoding="utf-8")
    return Root(path)


def again(root: Root) -> Root:
    """The root as the next command opens it."""
    return Root(root.path)


def index(root: Root, stages: Iterable[str] = tuple(ALL_STAGES)) -> list[tuple[str, str]]:
    """Bring a root up to date as the one who writes; returns what ran."""
    opened = again(root)
    with opened.writing():
        return build_tables(opened, stages)


def fail_to_push(root: Root, s3: ObjectServer, part: str) -> None:
    """Index while the server takes nothing whose path has a part in it."""
    s3.fault = lambda method, path: 500 if method == "PUT" and part in path else None
    with pytest.raises(StoreError):
        index(root)
    s3.fault = None


def check_that_second_waits(first: Lease, second: Lease, seconds: float) -> None:
    """A lease that is held is not had by another one until it is given back; both are given back in the end."""
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
