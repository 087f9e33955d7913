"""`prune` of a root: expired snapshots and files without a reference, with the cache of read files."""

from __future__ import annotations

import math
import time

from graphrag_pipeline.pipeline.retention import prune, render_sweep
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.support.roots import build_tables, put
from graphrag_pipeline_tests.support.two_snapshots import EVERYTHING, _indexed_twice, first_of, root

__all__ = ["_indexed_twice", "root"]


def test_files_within_the_grace_time_stay(root: Root) -> None:
    # The fixture's copy made every file now, and only the manifests and their copies are from 2001.
    first = first_of(root)
    swept = prune(root, n_kept=1, before=time.time() - 3600)
    assert swept.snapshots == (first,)
    assert [path.name for path in swept.paths] == [f"{first}.manifest"]
    assert prune(root, n_kept=1, before=math.inf).paths


def test_cached_conversions_of_removed_or_edited_files_are_deleted(root: Root) -> None:
    put(root.path, "rows.jsonl", '{"id": 1, "title": "t", "text": "They say that Scrooge slept."}')
    put(root.path, "more.jsonl", '{"id": 1, "title": "t", "text": "They say that Scrooge woke."}')
    build_tables(root, EVERYTHING)
    put(root.path, "rows.jsonl", '{"id": 1, "title": "t", "text": "They say that Scrooge ate."}')
    (root.path / "input" / "more.jsonl").unlink()
    build_tables(root, EVERYTHING)
    cache = root.cache_folder / "documents"
    assert len(list(cache.iterdir())) == 3
    prune(root, n_kept=9, before=math.inf)
    assert len(list(cache.iterdir())) == 1
    assert build_tables(root, EVERYTHING) == []
    assert len(list(cache.iterdir())) == 1, "the kept one is the one that is read"


def test_the_lines_name_every_snapshot_and_file(root: Root) -> None:
    first = first_of(root)
    swept = prune(root, n_kept=1, before=math.inf, is_dry_run=True)
    lines = render_sweep(swept, is_dry_run=True)
    assert lines[0] == f"would remove snapshot {first}"
    assert all(f"would remove {path}" in lines for path in swept.paths)
    assert lines[-1].startswith("would remove 1 snapshot and ")
