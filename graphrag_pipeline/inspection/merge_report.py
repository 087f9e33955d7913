"""Merges of entity resolution: those of the index, and those that the present settings would make.

No table is written. Keep out: the rules (`indexing/graph/merge_proposals.py`, `indexing/graph/semantic_resolution.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.indexing.graph.merge import merge_graph
from graphrag_pipeline.indexing.graph.overrides import read_overrides
from graphrag_pipeline.indexing.graph.resolution import Merge
from graphrag_pipeline.indexing.graph.semantic_resolution import (
    choose_verdict_pairs,
    merge_by_verdict,
    merge_similar,
    propose_similar,
    show_entities,
    verdict_request,
)
from graphrag_pipeline.indexing.graph.titles import NamePolicy
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.settings.settings import OVERRIDES_FILE

MENTIONS = ("entity_mentions", "relationship_mentions", "claim_mentions")


@dataclass(frozen=True)
class MergeReport:
    """Rows of `entity_merges`, compared with those of the present graph.

    Attributes:
        merges: all merges.
        added, removed: merges that the present graph lacks, and merges that it would lose.
        unasked: (title, title, cosine) of pairs without a stored verdict, which the model would get.
    """

    merges: list[dict[str, Any]]
    added: list[dict[str, Any]]
    removed: list[dict[str, Any]]
    unasked: list[tuple[str, str, float]]


def list_merges(root: Root) -> MergeReport:
    """Return the merges of the present graph.

    Raises:
        PipelineError: the root has no graph yet, or an imported index.
    """
    _refuse_import(root)
    return MergeReport(root.tables.read("entity_merges").to_pylist(), [], [], [])


def _refuse_import(root: Root) -> None:
    if root.is_imported:
        raise PipelineError(
            f"`{root.path}` holds an imported index, which does not record merges of names; run `merges` in a root "
            "whose index was made from documents"
        )


def preview_merges(root: Root) -> MergeReport:
    """Return the merges that the present settings, prompts and overrides would give.

    No chat model is called and no table is written. Vectors that are not stored yet are requested from the embedding
    model.

    Raises:
        PipelineError: a bucket has no mentions yet, or the root has an imported index.
    """
    _refuse_import(root)
    overrides = read_overrides(root.read_file(OVERRIDES_FILE))
    entities, relationships, claims, text_units = (_scan(root, table) for table in (*MENTIONS, "text_units"))
    merge = partial(merge_graph, entities, relationships, claims, root.settings.graph, text_units=text_units)
    policy = NamePolicy(overrides, rules=root.settings.resolution.applied_rules)
    tables = merge(policy=policy)
    unasked: list[tuple[str, str, float]] = []
    if root.settings.resolution.is_semantic:
        proposals, unasked = _propose_from_store(root, tables["entities"], tables["relationships"])
        tables = merge(policy=replace(policy, proposals=proposals)) if proposals else tables
    wanted = tables["entity_merges"].to_pylist()
    head = root.tables.head("entity_merges")
    present = root.tables.read_head(head).to_pylist() if head else []
    return MergeReport(
        wanted, [row for row in wanted if row not in present], [row for row in present if row not in wanted], unasked
    )


def _scan(root: Root, table: str) -> Any:
    from graphrag_pipeline.pipeline.stages import owner_of

    return root.tables.dataset([root.tables.need(table, key) for key in owner_of(table).partitions(root.settings)])


def _propose_from_store(
    root: Root, entities: pa.Table, relationships: pa.Table
) -> tuple[list[Merge], list[tuple[str, str, float]]]:
    """Return merges by vectors and stored verdicts, and the pairs without a verdict."""
    settings = root.settings.resolution
    pairs = propose_similar(entities, relationships, root.embedder, settings)
    merges = merge_similar(entities, pairs, settings)
    if not settings.uses_model:
        return merges, []
    shown, prompt = show_entities(entities), root.prompt("resolve_entities")
    sent = choose_verdict_pairs(pairs, settings)
    replies = root.models.chat_model("resolution").recall([verdict_request(shown, pair, prompt) for pair in sent])
    titles, unasked = shown["title"], []
    for pair, reply in zip(sent, replies, strict=True):
        if reply is None:
            unasked.append((titles[pair.row], titles[pair.into], pair.similarity))
        elif reply.value.same:
            merges.append(merge_by_verdict(titles, pair, reply))
    return merges, unasked


def render_report(report: MergeReport) -> list[str]:
    """Render one line per merge; + marks a new one, - one that would be removed."""
    marks = [("+", row) for row in report.added] + [("-", row) for row in report.removed]
    marks += [(" ", row) for row in report.merges if row not in report.added]
    lines = [
        f"{mark} {row['name']} -> {row['title']}  ({row['rule']}, {row['score']:.2f}: {row['evidence']})"
        for mark, row in marks
    ]
    lines += [f"? {a} / {b}  (cosine {cosine:.2f}: the model would decide)" for a, b, cosine in report.unasked]
    return lines or ["no merges"]
