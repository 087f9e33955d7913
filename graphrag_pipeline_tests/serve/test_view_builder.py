"""The views of a running server follow its roots and its access rules."""

from __future__ import annotations

import asyncio
import json

import pytest

from graphrag_pipeline.access.editing import add_key
from graphrag_pipeline.access.rules import FollowedRules
from graphrag_pipeline.access.view_guard import ViewNotReadyError
from graphrag_pipeline.access.view_settings import find_view
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.serve.errors import error_of
from graphrag_pipeline.serve.served_roots import ServedRoots
from graphrag_pipeline.serve.view_builder import building_views
from graphrag_pipeline_tests.support.roots import build_tables, make_root

_WAIT_S = 300.0
FILTERS = ("level=open",)


@pytest.mark.slow
def test_a_principal_gets_his_view_while_the_server_runs(tmp_path):
    texts = {"open": "Bob Cratchit met Ebenezer Scrooge.", "secret": "Bob Cratchit met Jacob Marley."}
    rows = [{"id": level, "title": level, "level": level, "text": text} for level, text in texts.items()]
    root = make_root(tmp_path / "r", {"rows.jsonl": "\n".join(map(json.dumps, rows))}, "storage: {n_buckets: 1}\n")
    build_tables(root, tuple(ALL_STAGES))
    add_key(tmp_path / "access.yaml", "reader", ["r"], FILTERS)
    served = ServedRoots({"r": root.path}, find_view)
    served.start()
    with pytest.raises(ViewNotReadyError, match="not made yet") as refused, served.lease("r", FILTERS):
        pass
    assert error_of(refused.value).headers["retry-after"] == "60"
    try:
        asyncio.run(_build(FollowedRules(tmp_path / "access.yaml"), served))
        with served.lease("r", FILTERS) as lease:
            assert lease.index.snapshot.table("documents")["title"].to_pylist() == ["open"]
            assert not lease.is_whole
    finally:
        served.close()


async def _build(rules: FollowedRules, served: ServedRoots) -> None:
    pointer = find_view(served.root("r").path, FILTERS) / "snapshots" / "current.json"
    async with building_views(rules, served), asyncio.timeout(_WAIT_S):
        while not pointer.exists():
            await asyncio.sleep(0.1)
