"""Share of communities that stay equal when one of 100 documents is removed and restored.

The embedded engine extracts each generated article once. Then each article in turn is left out and put back: the graph
is merged, and communities are detected from the earlier ones. A community is kept if one of its level has exactly its
members. The bound is the share of communities without an entity of that article alone. Keep out: disk, Dagster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import pyarrow as pa

from graphrag_pipeline.engines.embedded.extraction import extract_graph
from graphrag_pipeline.indexing.communities.detection import detect_communities
from graphrag_pipeline.indexing.communities.stable import PublishedGraph
from graphrag_pipeline.indexing.graph.merge import merge_graph
from graphrag_pipeline.indexing.text_units import split_documents
from graphrag_pipeline.inputs.documents import build_documents, read_records
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline_tests.bench.articles import iterate_articles
from graphrag_pipeline_tests.bench.measuring import Figure

LEAST_KEPT = 0.92
_MENTIONS = ("entity_mentions", "relationship_mentions", "claim_mentions")
_SETTINGS = Settings()

Mentions = Mapping[str, pa.Table]


@dataclass(frozen=True)
class Kept:
    """Shares of communities that are kept when one document goes, and when it comes back.

    Attributes:
        bound: share that keeps all its entities when it goes.
        cold_removed: share kept by a run from cold.
        restored: share of the first communities that are there at the end.
    """

    removed: float
    added: float
    restored: float
    cold_removed: float
    bound: float


def run(n_articles: int = 100) -> list[Figure]:
    """Leave out each article in turn and put it back."""
    extracted = [
        _extract(article.name, f"{article.title}\n\n{article.text}\n") for article in iterate_articles(n_articles)
    ]
    whole = _detect(_merge(extracted))
    kept = [_leave_out(whole, _merge([*extracted[:i], *extracted[i + 1 :]])) for i in range(n_articles)]
    return [
        Figure("communities kept, a document of 100 removed or added: mean", _both(kept), "", least=LEAST_KEPT),
        Figure("communities kept, removed", mean(k.removed for k in kept), ""),
        Figure("communities kept, added", mean(k.added for k in kept), ""),
        Figure("communities kept, removed and added again", mean(k.restored for k in kept), ""),
        Figure("communities kept, removed, cold", mean(k.cold_removed for k in kept), ""),
        Figure("communities that could be kept, removed", mean(k.bound for k in kept), ""),
    ]


def _both(kept: Sequence[Kept]) -> float:
    return mean((k.removed + k.added) / 2 for k in kept)


def _extract(name: str, content: str) -> Mentions:
    """Mentions of one document."""
    documents = build_documents(read_records(name, content.encode(), _SETTINGS.input))
    units = split_documents(documents, _SETTINGS.text_units)
    return extract_graph(documents, units, _SETTINGS.extraction)


def _merge(extracted: Sequence[Mentions]) -> dict[str, pa.Table]:
    mentions = (pa.concat_tables([tables[name] for tables in extracted]) for name in _MENTIONS)
    return merge_graph(*mentions, _SETTINGS.graph)


def _detect(graph: Mapping[str, pa.Table], published: PublishedGraph | None = None) -> PublishedGraph:
    entities, relationships = graph["entities"], graph["relationships"]
    communities = detect_communities(entities, relationships, _SETTINGS.communities, published)
    return PublishedGraph(entities, relationships, communities)


def _leave_out(whole: PublishedGraph, graph: Mapping[str, pa.Table]) -> Kept:
    """Return the shares for the way to a smaller graph and back."""
    smaller = _detect(graph, whole)
    again = _detect({"entities": whole.entities, "relationships": whole.relationships}, smaller)
    there = set(graph["entities"]["id"].to_pylist())
    could_stay = [there.issuperset(members) for members in whole.communities["entity_ids"].to_pylist()]
    return Kept(
        removed=_share_kept(whole, smaller),
        added=_share_kept(smaller, again),
        restored=_share_kept(whole, again),
        cold_removed=_share_kept(whole, _detect(graph)),
        bound=mean(could_stay),
    )


def _share_kept(before: PublishedGraph, after: PublishedGraph) -> float:
    """Share of communities that are there with exactly the same members, over all levels."""
    old, new = (set(graph.communities["id"].to_pylist()) for graph in (before, after))
    return len(old & new) / len(old)
