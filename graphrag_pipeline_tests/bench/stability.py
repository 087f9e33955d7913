"""Share of communities that stay equal when one of 100 documents is removed and restored.

The embedded engine extracts each generated article once. Then each article in turn is left out and put back: the graph
is merged, and communities are detected from the earlier ones. A community is kept if one of its level has exactly its
members. Keep out: disk, Dagster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def run(n_articles: int = 100) -> list[Figure]:
    """Leave out each article in turn and put it back."""
    extracted = [
        _extract(article.name, f"{article.title}\n\n{article.text}\n") for article in iterate_articles(n_articles)
    ]
    whole = _detect(_merge(extracted))
    kept = [_leave_out(whole, _merge([*extracted[:i], *extracted[i + 1 :]])) for i in range(n_articles)]
    removed, added, cold = map(mean, zip(*kept, strict=True))
    both = (removed + added) / 2
    return [
        Figure("communities kept, a document of 100 removed or added: mean", both, "", least=LEAST_KEPT),
        Figure("communities kept, removed, cold", cold, ""),
    ]


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


def _leave_out(whole: PublishedGraph, graph: Mapping[str, pa.Table]) -> tuple[float, float, float]:
    """Return the shares that are kept on the way to a smaller graph, on the way back, and by a run from cold."""
    smaller = _detect(graph, whole)
    again = _detect({"entities": whole.entities, "relationships": whole.relationships}, smaller)
    return _share_kept(whole, smaller), _share_kept(smaller, again), _share_kept(whole, _detect(graph))


def _share_kept(before: PublishedGraph, after: PublishedGraph) -> float:
    """Share of communities that are there with exactly the same members, over all levels."""
    old, new = (set(graph.communities["id"].to_pylist()) for graph in (before, after))
    return len(old & new) / len(old)
