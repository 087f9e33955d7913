"""Plans of the stages that a chat model makes, from the settings and prompts of a root.

One function per stage; each reads the prompts from disk. Keep out: carrying out a plan.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from graphrag_pipeline.identity import bucket_keys
from graphrag_pipeline.indexing.extraction.model import ClaimsPlan, ExtractionPlan
from graphrag_pipeline.indexing.graph.model_descriptions import SummaryPlan
from graphrag_pipeline.indexing.graph.resolution import Merge
from graphrag_pipeline.indexing.graph.semantic_resolution import (
    choose_verdict_pairs,
    merge_similar,
    propose_similar,
    request_verdicts,
)
from graphrag_pipeline.indexing.reports.model import ReportPlan
from graphrag_pipeline.models.pool import Progress
from graphrag_pipeline.models.ports import ChatModel, Failure
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.storage.table_store import code_version_of
from graphrag_pipeline.text.tokens import count_tokens_each


def plan_extraction(root: Root) -> ExtractionPlan:
    """Return how text units are extracted."""
    settings = root.settings.extraction
    claims = None
    if settings.has_claims:
        prompts = root.prompt("extract_claims"), root.prompt("extract_claims_continue")
        claims = ClaimsPlan(*prompts, settings.claim_description)
    return ExtractionPlan(
        prompt=root.prompt("extract_graph"),
        continue_prompt=root.prompt("extract_graph_continue"),
        entity_types=settings.entity_types,
        max_gleanings=settings.max_gleanings,
        language=settings.language,
        claims=claims,
        only_names_in_text=settings.only_names_in_text,
    )


def is_extraction_proven(root: Root) -> bool:
    """Return whether the present prompt and model have already found something in this corpus."""
    code_version = code_version_of(root.code_of(STAGES["extracted_graph"]))
    heads = (root.tables.head("entity_mentions", bucket) for bucket in bucket_keys(root.settings.storage.n_buckets))
    return any(head and head.code_version == code_version and head.n_rows for head in heads)


def plan_summaries(root: Root) -> SummaryPlan:
    """Return how descriptions are summarized."""
    settings = root.settings.descriptions
    return SummaryPlan(
        prompt=root.prompt("summarize_descriptions"),
        max_input_tokens=settings.max_input_tokens,
        max_words=root.settings.words_for("descriptions"),
        language=settings.language,
        max_joined=settings.max_joined,
        count_tokens=partial(count_tokens_each, encoding=root.settings.text_units.encoding),
    )


def plan_reports(root: Root) -> ReportPlan:
    """Return how community reports are requested."""
    settings = root.settings.reports
    return ReportPlan(root.prompt("community_report"), root.settings.words_for("reports"), settings.language)


def propose_by_meaning(
    root: Root, entities: pa.Table, relationships: pa.Table, model: ChatModel | None, progress: Progress | None = None
) -> tuple[list[Merge], list[Failure]]:
    """Return merges that vectors suggest and, if a model is given, its verdicts on pairs that are less similar."""
    settings = root.settings.resolution
    pairs = propose_similar(entities, relationships, root.embedder, settings)
    merges = merge_similar(entities, pairs, settings)
    failures: list[Failure] = []
    if model:
        unclear = choose_verdict_pairs(pairs, settings)
        judged, failures = request_verdicts(entities, unclear, root.prompt("resolve_entities"), model, progress)
        merges += judged
    return merges, failures
