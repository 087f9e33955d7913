"""Indexes of one popular entity and two rare ones, after the acceptance cases of local search (TU1, TU2, ...)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import numpy as np

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.identity import entity_id, relationship_id, stable_hash
from graphrag_pipeline.publishing.contract_tables import JOINED_TABLES, join_contract_tables
from graphrag_pipeline.query.context import PART_OVERHEAD, ROW_OVERHEAD
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.settings.settings import LocalSearchSettings, Settings
from graphrag_pipeline.tables import STAGE_TABLES
from graphrag_pipeline.text.tokens import count_tokens_each
from graphrag_pipeline_tests.support.corpora.small_index import freeze

N_TOKENS = 300 - ROW_OVERHEAD
"""Of each text unit, as the index counts them: with its overhead 300, so that 20 text units cost 6,000 tokens."""
OF_CHAMOMILE = (5, 4, *np.linspace(4, 0, 48).round().astype(int).tolist())
"""Relationships of Chamomile that TU1 to TU50 state, falling from 5 to 0."""
CHAMAZULENE_UNITS = {"CHAMOMILE": range(1, 51), "CHAMAZULENE": (1, 5, 51, 52), "NF-KB PATHWAY": (5, 53)}
HERB_UNITS = {"CHAMOMILE": range(1, 51), "EUROPEAN HERBALISM": range(51, 59), "LAVENDER": range(59, 89)}
"""Numbers of the text units of each entity in the two cases, best entity first."""
N_PARTS = 3
"""Entities, relationships, text units."""

GIVES_MAIN_ENTITY_MOST = {
    "depth_first": True,
    "weighted_quota": True,
    "minimum_guarantee": True,
    "balanced": True,
    "graph": True,
    "round_robin": False,
    "per_entity_cap": False,
}
"""Strategy -> whether it gives the main entity more text units than any other (acceptance case ii)."""

Pair = tuple[str, str]

NEIGHBOURS = tuple(f"BRIDGE {letter}" for letter in "ABCDEFGH")
"""Entities that no text unit names; the relationships of the three lead to them."""
CHAMAZULENE_EDGES: dict[Pair, tuple[int, ...]] = {
    **{
        ("CHAMOMILE", NEIGHBOURS[i]): tuple(n for n, count in enumerate(OF_CHAMOMILE, start=1) if count > i)
        for i in range(5)
    },
    ("CHAMAZULENE", NEIGHBOURS[5]): (51, 52),
    ("CHAMAZULENE", NEIGHBOURS[6]): (51,),
    ("NF-KB PATHWAY", NEIGHBOURS[7]): (53,),
}
"""Relationships, and the text units that state them: TU51 states two of Chamazulene, TU52 one; TU53 one of NF-kB."""


def open_index(
    folder: Path,
    units: Mapping[str, Iterable[int]],
    descriptions: Mapping[str, str],
    edges: Mapping[Pair, Collection[int]],
) -> GraphIndex:
    """An index of entities in numbered text units.

    Args:
        units: numbers of the text units of each entity.
        edges: numbers of the text units that state each relationship.
    """
    units_of = {title: sorted(numbers) for title, numbers in units.items()}
    names = {n: [t for t in units_of if n in units_of[t]] for numbers in units_of.values() for n in numbers}
    texts = {n: f"{' and '.join(titles).capitalize()} are told of on page {n}." for n, titles in sorted(names.items())}
    degree = {title: sum(title in pair for pair in edges) for title in units_of}
    rows: dict[str, list[dict]] = {
        "documents": [
            {"id": stable_hash(str(n)), "title": f"TU{n}", "text": text, "path": f"{n:03}.txt", "record": "",
             "content_hash": "x", "metadata": "{}"}
            for n, text in texts.items()
        ],
        "text_units": [
            {"id": unit_id(n), "document_id": stable_hash(str(n)), "position": 0, "start": 0, "end": len(text),
             "text": text, "n_tokens": N_TOKENS}
            for n, text in texts.items()
        ],
        "entities": [
            {"id": entity_id(title), "title": title, "type": "CONCEPT", "types": ["CONCEPT"], "names": [title.title()],
             "descriptions": [descriptions[title]], "description_key": title, "frequency": len(numbers),
             "text_unit_ids": sorted(map(unit_id, numbers)), "n_mentions": len(numbers), "degree": degree[title]}
            for title, numbers in units_of.items()
        ],
        "relationships": [
            {"id": relationship_id(*pair), "source": pair[0], "target": pair[1], "source_id": entity_id(pair[0]),
             "target_id": entity_id(pair[1]), "descriptions": [], "description_key": "/".join(pair), "weight": 1.0,
             "n_mentions": len(numbers), "combined_degree": degree[pair[0]] + degree[pair[1]],
             "text_unit_ids": sorted(map(unit_id, numbers))}
            for pair, numbers in edges.items()
        ],
        "descriptions": [
            {"description_key": key, "kind": kind, "description": text, "n_descriptions": 1, "is_fallback": False}
            for kind, described in (("entity", descriptions), ("relationship", {"/".join(pair): "" for pair in edges}))
            for key, text in described.items()
        ],
    }  # fmt: skip
    stages = {name: STAGE_TABLES[name].from_rows(rows.get(name, [])) for name in JOINED_TABLES}
    snapshot = freeze(folder, join_contract_tables(stages, None, count_tokens_each))
    return GraphIndex(snapshot, Settings(), load_static_embeddings())


def unit_id(number: int) -> str:
    return stable_hash("unit", str(number))


def search_units(index: GraphIndex, question: str, strategy: str, n_units: int) -> list[tuple[int, tuple[str, ...]]]:
    """Numbers of the text units that local search takes of a budget of so many, and the entities that each informs."""
    settings = LocalSearchSettings(
        strategy=strategy, top_k_entities=3, community_share=0, text_unit_share=1,
        max_context_tokens=n_units * (N_TOKENS + ROW_OVERHEAD) + N_PARTS * PART_OVERHEAD, packing="shared",
    )  # fmt: skip
    result = index.search(question, context_only=True, **settings.model_dump(exclude={"for_questions"}))
    return [(int(unit.document_title.removeprefix("TU")), unit.entities) for unit in result.context.text_units]
