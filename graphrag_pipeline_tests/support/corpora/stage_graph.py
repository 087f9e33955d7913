"""Stage tables for tests: a graph from a few words, and Microsoft's Christmas Carol index in our stage schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from graphrag_pipeline.identity import entity_id, relationship_id, stable_hash
from graphrag_pipeline.tables import COVARIATES, DESCRIPTIONS, ENTITIES, RELATIONSHIPS
from graphrag_pipeline_tests.support.paths import MICROSOFT_INDEX


class StageGraph(NamedTuple):
    entities: pa.Table
    relationships: pa.Table
    covariates: pa.Table


def make_graph(
    relationships: Mapping[tuple[str, str], Sequence[str]],
    entities: Mapping[str, Sequence[str]] | None = None,
    claims: Iterable[tuple[str, str, str]] = (),
    weights: Mapping[tuple[str, str], float] | None = None,
) -> StageGraph:
    """Stage tables of a graph.

    Args:
        relationships: (title, title) -> descriptions.
        entities: title -> descriptions; titles at the ends of relationships need not be here.
        claims: (subject, object, description).
        weights: of relationships, 1 where not given.
    """
    described = {title: (entities or {}).get(title, ()) for pair in relationships for title in pair}
    described |= entities or {}
    pairs = [tuple(sorted(pair)) for pair in relationships]
    degrees = {title: sum(title in pair for pair in pairs) for title in described}
    return StageGraph(
        ENTITIES.from_rows([_entity_row(title, texts, degrees[title]) for title, texts in described.items()]),
        RELATIONSHIPS.from_rows(
            [
                _relationship_row(*sorted(pair), texts, (weights or {}).get(pair, 1.0), degrees)
                for pair, texts in relationships.items()
            ]
        ),
        COVARIATES.from_rows([_claim_row(*claim) for claim in claims]),
    )


def _entity_row(title: str, texts: Sequence[str], degree: int) -> dict:
    descriptions = sorted(set(texts) - {""})
    return {
        "id": entity_id(title),
        "title": title,
        "type": "PERSON",
        "types": ["PERSON"],
        "names": [title],
        "descriptions": descriptions,
        "description_key": stable_hash("entity", title, *descriptions),
        "text_unit_ids": [],
        "frequency": 1,
        "n_mentions": 1,
        "degree": degree,
    }


def _relationship_row(source: str, target: str, texts: Sequence[str], weight: float, degrees: Mapping) -> dict:
    descriptions = sorted(set(texts) - {""})
    return {
        "id": relationship_id(source, target),
        "source": source,
        "target": target,
        "source_id": entity_id(source),
        "target_id": entity_id(target),
        "descriptions": descriptions,
        "description_key": stable_hash("relationship", source, target, *descriptions),
        "weight": weight,
        "n_mentions": 1,
        "combined_degree": degrees[source] + degrees[target],
        "text_unit_ids": [],
    }


def _claim_row(subject: str, target: str, description: str) -> dict:
    return {
        "id": stable_hash("claim", subject, target, description),
        "covariate_type": "claim",
        "type": "FACT",
        "description": description,
        "subject_id": subject,
        "object_id": target,
        "status": "TRUE",
        "source_text": description,
        "text_unit_id": "",
        "text_unit_ids": [],
    }


def describe(graph: StageGraph) -> pa.Table:
    """Return descriptions that join all texts, instead of the summary stage."""
    rows = {}
    for kind, table in (("entity", graph.entities), ("relationship", graph.relationships)):
        for row in table.select(["description_key", "descriptions"]).to_pylist():
            rows[row["description_key"]] = {
                "description_key": row["description_key"],
                "kind": kind,
                "description": " ".join(row["descriptions"]),
                "n_descriptions": len(row["descriptions"]),
                "is_fallback": False,
            }
    return DESCRIPTIONS.from_rows(list(rows.values()))


def shuffled(table: pa.Table, seed: int) -> pa.Table:
    import numpy as np

    return table.take(pa.array(np.random.default_rng(seed).permutation(table.num_rows)))


def read_christmas_carol() -> StageGraph:
    """Return Microsoft's index as tables of our `graph` stage: pairs folded, missing ends added as entities."""
    entities = {row["title"]: [row["description"]] for row in _read("entities")}
    relationships: dict[tuple[str, str], list[str]] = {}
    weights: dict[tuple[str, str], float] = {}
    for row in _read("relationships"):
        pair = tuple(sorted((row["source"], row["target"])))
        relationships.setdefault(pair, []).append(row["description"])
        weights[pair] = weights.get(pair, 0.0) + row["weight"]
    claims = {tuple(row[c] or "" for c in ("subject_id", "object_id", "description")) for row in _read("covariates")}
    return make_graph(relationships, entities, sorted(claims), weights)


def _read(table: str) -> list[dict]:
    return pq.read_table(MICROSOFT_INDEX / f"{table}.parquet").to_pylist()
