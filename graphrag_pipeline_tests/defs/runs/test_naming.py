"""Test of keys and names of a root in a deployment with others."""

from pathlib import Path

import dagster as dg
import pytest

from graphrag_pipeline.defs.runs.naming import (
    RECLUSTER_TAG,
    REVIEW_TAG,
    asset_key,
    full_name,
    has_option,
    plain_job,
    tag_option,
)
from graphrag_pipeline.pipeline.root import Root

ALONE, NEWS, SHOP_NEWS = (Root(Path("root"), prefix) for prefix in ((), ("news",), ("shop", "news")))


def run_of(job: str, *keys: str) -> dg.DagsterRun:
    """Return a run of a job, or of assets."""
    chosen = frozenset(dg.AssetKey.from_user_string(key) for key in keys)
    return dg.DagsterRun(job_name=job, run_id="0", asset_selection=chosen or None)


def test_an_option_is_one_of_a_user_or_a_hidden_one_of_ours() -> None:
    assert has_option({REVIEW_TAG: "true"}, REVIEW_TAG) and has_option(tag_option(REVIEW_TAG), REVIEW_TAG)
    assert not any(has_option(tags, REVIEW_TAG) for tags in ({}, {REVIEW_TAG: "false"}, tag_option(RECLUSTER_TAG)))
    assert all(name.startswith(".dagster/") for name in tag_option(REVIEW_TAG))


def test_keys_and_names_begin_with_the_prefix() -> None:
    assert [asset_key(root, "graph").to_user_string() for root in (ALONE, SHOP_NEWS)] == ["graph", "shop/news/graph"]
    assert [full_name(root, "reindex_stale") for root in (ALONE, NEWS)] == ["reindex_stale", "news_reindex_stale"]


@pytest.mark.parametrize(
    ("run", "found"),
    [
        (run_of("reindex_stale"), ["reindex_stale", None, None]),
        (run_of("news_reindex_stale"), [None, "reindex_stale", None]),
        (run_of("shop_news_local_search_job"), ["shop_news_local_search_job", None, "local_search_job"]),
        (run_of("orders_job"), [None, None, None]),
        (run_of("__ASSET_JOB", "graph"), ["__ASSET_JOB", None, None]),
        (run_of("__ASSET_JOB", "news/graph", "orders"), [None, "__ASSET_JOB", None]),
        (run_of("__ASSET_JOB", "orders"), [None, None, None]),
        (run_of("__ASSET_JOB"), ["__ASSET_JOB", "__ASSET_JOB", "__ASSET_JOB"]),
    ],
)
def test_a_run_belongs_to_the_root_of_its_job_or_assets(run: dg.DagsterRun, found: list[str | None]) -> None:
    assert [plain_job(root, run) for root in (ALONE, NEWS, SHOP_NEWS)] == found
