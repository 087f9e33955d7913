"""Names that runs, jobs and sensors share, and the keys and names of a root's assets, jobs, schedules and sensors.

Dagster stores them with every run, so a changed name no longer finds older runs. A deployment may hold several roots
and assets of others, so all names of a root begin with its key prefix. Without one, they are the plain names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES

if TYPE_CHECKING:
    from dagster import AssetKey, DagsterRun


_HIDDEN = ".dagster/graphrag_"
"""Beginning of tags that Dagster's UI does not show."""

ONLY_STALE_TAG = f"{_HIDDEN}only_stale"
"""Run tag: skip a partition that is fresh by now, because the stages above it came out equal."""

RECLUSTER_TAG = "graphrag/recluster"
"""Run tag: cluster communities from cold, whatever is published."""

ALLOW_REMOVAL_TAG = "graphrag/allow_removal"
"""Run tag: publish although many published documents are gone (`publishing.max_removed_share`)."""

REVIEW_TAG = "graphrag/review"
"""Run tag: let the candidate wait for review, whatever `publishing.review` says."""

_HIDDEN_OPTIONS = {tag: f"{_HIDDEN}{tag.partition('/')[2]}" for tag in (RECLUSTER_TAG, ALLOW_REMOVAL_TAG, REVIEW_TAG)}
"""Options of a run that a user sets as a tag -> its form in runs that this package starts.

Of our tags, these runs show what started them and, over the corpus, the changed files: a list of runs has little room.
"""

APPROVED_TAG = f"{_HIDDEN}approved"
"""Run tag: id of the candidate that a reviewer publishes."""

WANTED_TAG = f"{_HIDDEN}wanted"
"""Run tag: hash of what a run started from that the fan-out requested; it counts the attempts by it."""

LISTED_TAG = f"{_HIDDEN}listed"
"""Run tag: hash of the list of the bucket's files in the shared store, which the run reads instead of the folder."""

STARTED_BY_TAG = "graphrag/started_by"
"""Tag of a run of assets: id of the job run that started it. Dagster's own tag for that means a re-execution."""

CHANGED_TAG = "graphrag/changed_files"
"""Tag of a run over the corpus: the changed files of all buckets, at most three by name."""

KIND_TAG = "graphrag/kind"
"""Tag of a job and of its runs: what the job is for. The runs that a job starts have `STARTED_BY_TAG` instead."""
INDEX, ASK, INSPECT, EVALUATE = "index", "ask", "inspect", "evaluate"
"""Kinds of jobs."""

BACKFILL_TAG = "dagster/backfill"
"""Dagster's own tag of a run: the id of its backfill."""

HOST_TAG = f"{_HIDDEN}host"
"""Run tag: host name and boot id of the machine that works on the run. Only there can the run's lock be checked."""

BATCHES_TAG = "graphrag/waits_for_batches"
"""Run tag: ids of the batches of model calls after which the index goes on."""

LOADED_TAG = "graphrag/code_version"
"""Tag of an asset's op and of a job that indexes: the code version when the definitions were loaded."""

REINDEX_STALE = "reindex_stale"
REINDEX_ALL = "reindex_all"
EMBEDDINGS_ONLY = "embeddings_only"
INDEX_IN_BATCHES = "index_in_batches"
REINDEX_JOBS = (REINDEX_STALE, REINDEX_ALL, EMBEDDINGS_ONLY, INDEX_IN_BATCHES)
"""Jobs that index as the command line does, in one op."""

BUCKET_JOB = "index_bucket"
CORPUS_JOB = "graph_and_later"
REPORTS_JOB = "reports_only"
PUBLISHING_ASSET_JOBS = (CORPUS_JOB, REPORTS_JOB)
"""Jobs over assets that end with the published snapshot."""

ASSET_JOB = "__ASSET_JOB"
"""Dagster's job for assets that are materialized in the UI, by a backfill or by an automation condition."""

WHOLE_INPUT = "whole_input"
"""Source asset: all documents of the input folder and the overrides as one version."""

FINISHED = ("SUCCESS", "FAILURE", "CANCELED")
"""Statuses of runs that ended."""

VERIFY_FILES = "verify_files"
STALE_REPORT = "stale_report"
OBSERVE_SOURCES = "observe_sources"
BATCH_JOB = "batch_job"
EVALUATION_JOB = "evaluation_job"
SEARCH_JOB = "_search_job"
"""End of the names of jobs that answer a question."""

OTHER_JOBS = (VERIFY_FILES, STALE_REPORT, OBSERVE_SOURCES, BATCH_JOB, EVALUATION_JOB)
"""Jobs that index nothing, beside those that answer a question."""

SHOWN_STATE = "graphrag_state.json"
"""File in the Dagster home: what each check of the state showed last, so that equal states are not reported again."""

INDEXING_JOBS = frozenset({*REINDEX_JOBS, *PUBLISHING_ASSET_JOBS, BUCKET_JOB, ASSET_JOB})
"""Plain names of jobs that change the index."""


def tag_option(tag: str) -> dict[str, str]:
    """Return the tag of a run that this package starts with an option."""
    return {_HIDDEN_OPTIONS[tag]: "true"}


def has_option(tags: Mapping[str, str], tag: str) -> bool:
    """Whether a run has an option, from a user or from this package."""
    return "true" in (tags.get(tag), tags.get(_HIDDEN_OPTIONS[tag]))


def asset_key(root: Root, name: str) -> AssetKey:
    """Return the key of an asset of a root."""
    from dagster import AssetKey

    return AssetKey([*root.key_prefix, name])


def full_name(root: Root, name: str) -> str:
    """Return the name of a job, schedule or sensor of a root."""
    return "_".join([*root.key_prefix, name])


def group_of(root: Root, kind: str) -> str:
    """Return the group of a root's assets of one kind."""
    return root.group_name or full_name(root, kind)


def plain_job(root: Root, run: DagsterRun) -> str | None:
    """Return the plain name of a run's job; None if the run is of another root or of other assets."""
    if run.job_name == ASSET_JOB:
        keys = run.asset_selection
        is_of_root = keys is None or not keys.isdisjoint({asset_key(root, name) for name in ALL_STAGES})
        return ASSET_JOB if is_of_root else None
    beginning = full_name(root, "")
    name = run.job_name.removeprefix(beginning)
    is_of_root = name in INDEXING_JOBS or name in OTHER_JOBS or name.endswith(SEARCH_JOB)
    return name if is_of_root and run.job_name.startswith(beginning) else None
