"""The graph of a sample of the corpus by rules, which tells how many calls a first build will make.

A model asks for a description of each entity and relationship with two different descriptions or more, and for a report
on each community. How many there are depends on how often the texts name the same things. So the embedded engine
extracts, merges and clusters a sample of this very corpus, which costs no call. Half of the sample is counted, too: the
growth from the half to the whole tells how the counts go on. Keep out: tokens, prices, and what is stored already
(`estimates.py`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.indexing.ports import Extractor
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.ports import load_port
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.tables import STAGE_TABLES

MAX_CHARACTERS = 60_000
"""Characters of the sample, about 13 text units of 1,200 tokens; the embedded engine reads them in half a second."""
LEAST_GROWTH, MOST_GROWTH = 0.6, 1.4
"""Bounds of the exponent b of counts that grow with the text as n^b."""
LOW, HIGH = 0.5, 2.5
"""Range of the calls that a model makes for one that is expected.

Measured with the test server on 3, 12, 40 and 100 articles and on a novel: 1.0 to 1.8 for descriptions, 0.6 to 2.0 for
reports. Weak models name less, and careful ones more.
"""

MAX_KEPT = 8
_DECISIVE = {"text_units", "extraction", "graph", "resolution", "communities", "reports"}
_MEASURED: dict[str, CorpusSample] = {}
_Tables = dict[str, pa.Table]


@dataclass(frozen=True)
class CorpusSample:
    """Counts of a sample and of a half of it, by stage.

    Attributes:
        n_units: text units of the sample.
        n_half_units: text units of the half; equal if there is only one document.
    """

    n_units: int
    n_half_units: int
    counts: Mapping[str, int]
    half: Mapping[str, int]

    def scale(self, stage: str, n_units: int) -> int:
        """Return the records of a stage in a corpus of so many text units."""
        found = self.counts[stage]
        if n_units <= self.n_units or not found:
            return math.ceil(found * n_units / max(1, self.n_units)) if n_units < self.n_units else found
        return math.ceil(found * (n_units / self.n_units) ** self._growth(stage))

    def _growth(self, stage: str) -> float:
        whole, half = self.counts[stage], self.half[stage]
        if not half or self.n_half_units >= self.n_units:
            return 1.0
        growth = math.log(whole / half) / math.log(self.n_units / self.n_half_units)
        return min(max(growth, LEAST_GROWTH), MOST_GROWTH)


def measure_sample(documents: pa.Table, root: Root) -> CorpusSample:
    """Return the counts of a sample of documents; those of the last few samples are kept for the process.

    Args:
        documents: of `tables.DOCUMENTS`; those of the sample are chosen by a hash of their ids.
        root: its settings split, merge and cluster; the embedded engine extracts.
    """
    sample, settings = _choose(documents, MAX_CHARACTERS), root.settings
    key = stable_hash("sample", settings.model_dump_json(include=_DECISIVE), *sample["text"].to_pylist())
    if key not in _MEASURED:
        while len(_MEASURED) >= MAX_KEPT:
            _MEASURED.pop(next(iter(_MEASURED)))
        extractor = load_port("extractor")(root)
        texts = sample["text"].to_pylist()
        half = _choose(sample, sum(map(len, texts)) // 2)
        n_shared = sum(map(operator.eq, texts, half["text"].to_pylist()))  # its last document may be cut
        shared = _read(sample.slice(0, n_shared), settings, extractor)
        n_units, counts = _count(_join(shared, _read(sample.slice(n_shared), settings, extractor)), settings)
        n_half_units, half_counts = _count(_join(shared, _read(half.slice(n_shared), settings, extractor)), settings)
        _MEASURED[key] = CorpusSample(n_units, n_half_units, counts, half_counts)
    return _MEASURED[key]


def _choose(documents: pa.Table, n_characters: int) -> pa.Table:
    """Return documents in the order of a hash, the last one cut so that they have at most so many characters."""
    keys = pa.array([stable_hash("estimate", document_id) for document_id in documents["id"].to_pylist()])
    ordered = documents.take(pc.sort_indices(keys))
    texts, left = [], n_characters
    for text in ordered["text"].to_pylist():
        if left <= 0:
            break
        texts.append(text[:left])
        left -= len(texts[-1])
    chosen = ordered.slice(0, len(texts))
    place = chosen.schema.get_field_index("text")
    return chosen.set_column(place, chosen.schema.field(place), pa.array(texts, chosen.schema.field(place).type))


def _read(documents: pa.Table, settings: Settings, extractor: Extractor) -> _Tables:
    """Return the text units of documents and their mentions, by table name; each document is read alone."""
    from graphrag_pipeline.indexing.text_units import split_documents

    units = split_documents(documents, settings.text_units)
    return {"text_units": units, **extractor.extract(documents, units).tables}


def _join(one: _Tables, other: _Tables) -> _Tables:
    return {name: STAGE_TABLES[name].sort(rows, other[name]) for name, rows in one.items()}


def _count(read: _Tables, settings: Settings) -> tuple[int, dict[str, int]]:
    """Return the number of text units, and the records of each stage in a graph of their mentions."""
    from graphrag_pipeline.indexing.communities.detection import detect_communities
    from graphrag_pipeline.indexing.communities.leiden import LEAST_EFFORT
    from graphrag_pipeline.indexing.graph.merge import merge_graph
    from graphrag_pipeline.indexing.graph.titles import NamePolicy

    units = read["text_units"]
    entity, relationship, claim = (read[f"{kind}_mentions"] for kind in ("entity", "relationship", "claim"))
    policy = NamePolicy(rules=settings.resolution.applied_rules)
    graph = merge_graph(entity, relationship, claim, settings.graph, text_units=units, policy=policy)
    entities, relationships = graph["entities"], graph["relationships"]
    communities = detect_communities(entities, relationships, settings.communities, effort=LEAST_EFFORT)
    sizes = pc.list_value_length(communities["entity_ids"])
    n_least = max(settings.descriptions.max_joined, 2)  # a model finds a record in more text units than rules
    return units.num_rows, {
        "summarized_descriptions": sum(_count_repeated(rows, n_least) for rows in (entities, relationships)),
        "community_reports": pc.sum(pc.greater_equal(sizes, settings.reports.min_report_size)).as_py() or 0,
        "entity_embeddings": entities.num_rows,
        "relationship_embeddings": relationships.num_rows,
        "report_embeddings": communities.num_rows,
    }


def _count_repeated(rows: pa.Table, n_least: int) -> int:
    """Return the number of records of `n_least` text units or more: a model describes a record once in each."""
    return pc.sum(pc.greater_equal(pc.list_value_length(rows["text_unit_ids"]), n_least)).as_py() or 0
