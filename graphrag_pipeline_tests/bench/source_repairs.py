"""What the import repairs in Microsoft's own tables, written a second time with pandas: for `parity_local.py`.

The peer reads the repaired tables. If its contexts are then ours, the repair is the cause of a difference. Nothing here
uses the code of the import. `place_entities` gives each entity a community, since Microsoft GraphRAG leaves out
entities without one; the endpoints of relationships become entities first. `fold_pairs` makes relationships that repeat
a pair of entities one relationship.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import pandas as pd

from graphrag_pipeline_tests.support.paths import MICROSOFT_INDEX

Tables: TypeAlias = dict[str, pd.DataFrame]
NAMES = ("entities", "relationships", "communities", "community_reports", "text_units", "covariates")


def write_repaired(folder: Path, repairs: list[Callable[[Tables], None]]) -> Path:
    """Write a copy of Microsoft's tables after some repairs, in order; return its folder."""
    tables = {name: pd.read_parquet(MICROSOFT_INDEX / f"{name}.parquet") for name in NAMES}
    for repair in repairs:
        repair(tables)
    folder.mkdir(parents=True)
    for name, frame in tables.items():
        frame.to_parquet(folder / f"{name}.parquet")
    return folder


def place_entities(tables: Tables, ids: Mapping[str, str]) -> None:
    """Make endpoints of relationships entities, and give each entity a community.

    An endpoint joins the communities that list one of its relationships. An entity in no community gets its own.

    Args:
        ids: title -> id of the entities to add, which both programs are given as matched entities.
    """
    added = _add_endpoints(tables, ids)
    ends = {row.id: (row.source, row.target) for row in tables["relationships"].itertuples()}
    communities = tables["communities"]
    joining = [
        [added[end] for found in listed for end in ends[found] if end in added]
        for listed in communities["relationship_ids"]
    ]
    communities["entity_ids"] = [
        list(dict.fromkeys([*members, *more])) for members, more in zip(communities["entity_ids"], joining, strict=True)
    ]
    placed = {entity for members in communities["entity_ids"] for entity in members}
    number, period = communities["community"].max() + 1, communities["period"].iloc[0]
    alone = [row for row in tables["entities"].itertuples() if row.id not in placed]
    rows = [
        {"id": f"alone {row.id}", "human_readable_id": number + place, "community": number + place, "level": 0,
         "parent": -1, "children": [], "title": row.title, "entity_ids": [row.id], "relationship_ids": [],
         "text_unit_ids": list(row.text_unit_ids), "period": period, "size": 1}
        for place, row in enumerate(alone)
    ]  # fmt: skip
    tables["communities"] = pd.concat([communities, pd.DataFrame(rows)], ignore_index=True)


def _add_endpoints(tables: Tables, ids: Mapping[str, str]) -> dict[str, str]:
    """Add the ends of relationships that are not entities, in the order of their titles; return their ids by title."""
    entities, relationships = tables["entities"], tables["relationships"]
    known = {_folded(title) for title in entities["title"]}
    units, others = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for row in relationships.itertuples():
        for end, other in ((row.source, row.target), (row.target, row.source)):
            if _folded(end) not in known:
                units[end] |= set(row.text_unit_ids)
                others[end].add(other)
    number = entities["human_readable_id"].max() + 1
    rows = [
        {"id": ids[_folded(title)], "human_readable_id": number + place, "title": title, "type": "UNKNOWN",
         "description": "", "text_unit_ids": _in_order(tables, units[title]), "frequency": len(units[title]),
         "degree": len(others[title])}
        for place, title in enumerate(sorted(units))
    ]  # fmt: skip
    tables["entities"] = pd.concat([entities, pd.DataFrame(rows)], ignore_index=True)
    return {row["title"]: row["id"] for row in rows}


def fold_pairs(tables: Tables) -> None:
    """Make relationships of one pair of entities, in either direction, one: the first, with the sum of the weights."""
    relationships = tables["relationships"].sort_values("human_readable_id")
    ends = zip(relationships["source"], relationships["target"], strict=True)
    pairs = pd.Series(["|".join(sorted(map(_folded, both))) for both in ends], relationships.index)
    first_of: dict[str, str] = {}
    rows = []
    for _, group in relationships.groupby(pairs, sort=False):
        row = group.iloc[0].to_dict()
        first_of |= dict.fromkeys(group["id"], row["id"])
        row["weight"] = group["weight"].sum()
        row["description"] = "\n".join(group["description"].unique())
        row["text_unit_ids"] = _in_order(tables, {unit for units in group["text_unit_ids"] for unit in units})
        rows.append(row)
    tables["relationships"] = pd.DataFrame(rows)
    tables["text_units"]["relationship_ids"] = [
        list(dict.fromkeys(first_of[found] for found in listed)) for listed in tables["text_units"]["relationship_ids"]
    ]


def _folded(title: str) -> str:
    return " ".join(title.upper().split())


def _in_order(tables: Tables, units: set[str]) -> list[str]:
    return [unit for unit in tables["text_units"].sort_values("human_readable_id")["id"] if unit in units]
