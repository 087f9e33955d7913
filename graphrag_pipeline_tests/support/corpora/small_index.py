"""A literal three-document index as stage tables, small enough to know every expected value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.identity import entity_id, relationship_id, stable_hash
from graphrag_pipeline.indexing.embeddings import embedded_texts
from graphrag_pipeline.publishing.candidates import freeze_candidate
from graphrag_pipeline.publishing.contract_tables import JOINED_TABLES, join_contract_tables
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.tables import STAGE_TABLES, VECTOR_TABLES
from graphrag_pipeline.text.tokens import count_tokens_each

TEXTS = {
    "b.txt": "Scrooge hired Bob Cratchit. Bob Cratchit loved Tiny Tim.",
    "a.txt": "Marley haunted Scrooge.",
    "c.txt": "The fog came pouring in.",
}
EDGES = {("BOB CRATCHIT", "SCROOGE"): "b.txt", ("BOB CRATCHIT", "TINY TIM"): "b.txt", ("MARLEY", "SCROOGE"): "a.txt"}
TITLES = ("BOB CRATCHIT", "FOG", "MARLEY", "SCROOGE", "TINY TIM")
UNITS_OF = {
    "BOB CRATCHIT": ["b.txt"], "FOG": ["c.txt"], "MARLEY": ["a.txt"], "SCROOGE": ["b.txt", "a.txt"],
    "TINY TIM": ["b.txt"],
}  # fmt: skip


def unit_id(path: str) -> str:
    return stable_hash("unit", path)


def community_id(level: int, *titles: str) -> str:
    return stable_hash("community", str(level), *sorted(titles))


ROOT = community_id(0, *(title for title in TITLES if title != "FOG"))
LONE = community_id(0, "FOG")
LEFT = community_id(1, "MARLEY", "SCROOGE")
RIGHT = community_id(1, "BOB CRATCHIT", "TINY TIM")
_COMMUNITIES = [
    (ROOT, 0, None, ["BOB CRATCHIT", "MARLEY", "SCROOGE", "TINY TIM"]),
    (LONE, 0, None, ["FOG"]),
    (LEFT, 1, ROOT, ["MARLEY", "SCROOGE"]),
    (RIGHT, 1, ROOT, ["BOB CRATCHIT", "TINY TIM"]),
]


def stage_tables() -> dict[str, pa.Table]:
    """All of `JOINED_TABLES`."""
    degree = {title: sum(title in pair for pair in EDGES) for title in TITLES}
    rows: dict[str, list[dict]] = {
        "documents": [
            {"id": stable_hash(path), "title": path, "text": text, "path": path, "record": "", "content_hash": "x",
             "metadata": "{}"}
            for path, text in TEXTS.items()
        ],
        "text_units": [
            {"id": unit_id(path), "document_id": stable_hash(path), "position": 0, "start": 0, "end": len(text),
             "text": text, "n_tokens": len(text.split())}
            for path, text in TEXTS.items()
        ],
        "entities": [
            {"id": entity_id(title), "title": title, "type": "PERSON", "types": ["PERSON"], "names": [title.title()],
             "descriptions": [f"About {title}."], "description_key": title, "frequency": len(UNITS_OF[title]),
             "text_unit_ids": sorted(unit_id(path) for path in UNITS_OF[title]), "n_mentions": 2,
             "degree": degree[title]}
            for title in TITLES
        ],
        "relationships": [
            {"id": relationship_id(*pair), "source": pair[0], "target": pair[1], "source_id": entity_id(pair[0]),
             "target_id": entity_id(pair[1]), "descriptions": [], "description_key": "/".join(pair), "weight": 1.0,
             "n_mentions": 1, "combined_degree": degree[pair[0]] + degree[pair[1]], "text_unit_ids": [unit_id(path)]}
            for pair, path in EDGES.items()
        ],
        "covariates": [
            {"id": "claim", "covariate_type": "claim", "type": "DEATH", "description": "Marley is dead.",
             "subject_id": "MARLEY", "object_id": "NONE", "status": "TRUE", "source_text": "Marley",
             "text_unit_id": unit_id("a.txt"), "text_unit_ids": [unit_id("a.txt")]}
        ],
        "descriptions": [
            *({"description_key": title, "kind": "entity", "description": f"About {title}.", "n_descriptions": 1,
               "is_fallback": False} for title in TITLES),
            *({"description_key": "/".join(pair), "kind": "relationship", "description": f"{pair[0]} knows {pair[1]}.",
               "n_descriptions": 1, "is_fallback": False} for pair in EDGES),
        ],
        "communities": [
            {"id": key, "level": level, "parent_id": parent, "entity_ids": sorted(map(entity_id, titles)),
             "size": len(titles)}
            for key, level, parent, titles in _COMMUNITIES
        ],
        "community_reports": [
            {"community_id": key, "level": level, "title": f"Report on {titles[0]}", "summary": "A summary.",
             "findings": [{"summary": "Finding", "explanation": f"So [Data: Entities ({entity_id(titles[0])})]."}],
             "rank": 5.0, "rating_explanation": "Because.", "is_verbatim": False, "is_fallback": False,
             "inputs_key": key, "context_key": key, "evidence": [], "new_share": 0.0}
            for key, level, _, titles in _COMMUNITIES
        ],
    }  # fmt: skip
    return {name: STAGE_TABLES[name].from_rows(rows.get(name, [])) for name in JOINED_TABLES}


def contract_tables(previous_numbers: pa.Table | None = None) -> dict[str, pa.Table]:
    return join_contract_tables(stage_tables(), previous_numbers, count_tokens_each)


def freeze(root: Path, tables: dict[str, pa.Table] | None = None) -> Snapshot:
    """The index frozen (not published) in a root, with real vectors."""
    tables = tables or contract_tables()
    embedder = load_static_embeddings()
    vectors: dict[str, np.ndarray] = {
        name: embedder.embed(embedded_texts(name, tables[table])) for name, (table, _) in VECTOR_TABLES.items()
    }
    store = SnapshotStore(root)
    return store.open(freeze_candidate(store, dict(tables), vectors, embedder.fingerprint))
