"""Machines that share a store: a root each with the same settings, brought up to date without Dagster's bookkeeping."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from graphrag_pipeline.root import Root
from graphrag_pipeline.stages import ALL_STAGES
from graphrag_pipeline_tests.roots import CAROL, build_tables, make_root


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
