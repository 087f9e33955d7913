"""Entities, in full: names and merges, strongest relationships, communities, and sentences that name them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow.dataset as ds

from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.query.index_reader import SnapshotReader
from graphrag_pipeline.reading.links import link_communities
from graphrag_pipeline.reading.lookup import find_record
from graphrag_pipeline.reading.pages import EntityLink, EntityPage, MergedName, Neighbour
from graphrag_pipeline.reading.passages import find_sentences


def read_entity(reader: SnapshotReader, name: str, n_most: int = 10) -> EntityPage:
    """Return the entity that a title, alias, number or id means.

    Args:
        n_most: maximum of relationships, and of sentences.

    Raises:
        RecordNameError: see `lookup.find_record`.
    """
    row = find_record(reader, "entity", name)
    [record] = reader.snapshot.take("entities", [row])
    relationships = reader.snapshot.adjacency.of("entity_relationships", row)
    units = reader.snapshot.adjacency.of("entity_text_units", row).tolist()
    names = tuple(dict.fromkeys(record["names"] or ()))
    named = find_sentences(reader, units, [*names, record["title"]], n_most)
    return EntityPage(
        id=record["id"],
        number=record["human_readable_id"],
        title=record["title"],
        type=record["type"],
        types=tuple(record["types"] or ()),
        description=record["description"] or "",
        names=tuple(name for name in names if name != record["title"]),
        merges=read_merges(reader, record["title"]),
        degree=record["degree"],
        relationships=_neighbours(reader, record["title"], _strongest(reader, relationships)[:n_most]),
        n_relationships=len(relationships),
        communities=_communities(reader, row),
        sentences=named.sentences,
        has_more_sentences=named.has_more,
        n_text_units=len(units),
        n_unnamed=named.n_unnamed,
    )


def link_entities(reader: SnapshotReader, rows: Sequence[int], counts: Sequence[int] = ()) -> tuple[EntityLink, ...]:
    """Return links to entities, in the order of `rows`.

    Args:
        counts: `EntityLink.n_text_units` of each; none: 0.
    """
    columns = ["human_readable_id", "title", "type", "degree", "description"]
    found = reader.snapshot.take("entities", list(rows), columns)
    return tuple(
        EntityLink(one["human_readable_id"], one["title"], one["type"], one["degree"], one["description"] or "", count)
        for one, count in zip(found, counts or [0] * len(rows), strict=True)
    )


def read_merges(reader: SnapshotReader, title: str) -> tuple[MergedName, ...]:
    """Return the names that were merged into an entity, best first; none in an imported index, and under a filter.

    They are rows of the stage table that the snapshot was joined from. A filter hides them, since their evidence may
    quote a document that does not pass.
    """
    snapshot = reader.snapshot
    head = snapshot.manifest.heads.get(f"entity_merges/{WHOLE}", {})
    folder = snapshot.folder.parent / "tables" / "entity_merges" / WHOLE
    paths = [str(folder / file["name"]) for file in head.get("files", ()) if (folder / file["name"]).is_file()]
    if not paths or reader.document_mask is not None:
        return ()
    rows = ds.dataset(paths, format="parquet").to_table(filter=ds.field("title") == title).to_pylist()
    merges = (MergedName(row["name"], row["rule"], row["evidence"], row["score"]) for row in rows)
    return tuple(sorted(merges, key=lambda merge: (-merge.score, merge.name)))


def _strongest(reader: SnapshotReader, rows: np.ndarray) -> list[int]:
    """Return relationships by weight, then by the degrees of both ends, then in file order."""
    weights, degrees = (reader.column("relationships", name)[rows] for name in ("weight", "combined_degree"))
    ordered: list[int] = rows[np.lexsort((rows, -degrees, -weights))].tolist()
    return ordered


def _neighbours(reader: SnapshotReader, title: str, rows: Sequence[int]) -> tuple[Neighbour, ...]:
    columns = ["human_readable_id", "source", "target", "description", "weight", "n_mentions"]
    return tuple(
        Neighbour(
            one["human_readable_id"],
            one["target"] if one["source"] == title else one["source"],
            one["description"] or "",
            one["weight"],
            one["n_mentions"],
        )
        for one in reader.snapshot.take("relationships", list(rows), columns)
    )


def _communities(reader: SnapshotReader, row: int) -> tuple:
    rows = reader.snapshot.adjacency.of("entity_communities", row)
    numbers = reader.column("communities", "community")[rows].tolist()
    return tuple(sorted(link_communities(reader, numbers), key=lambda link: link.level))
