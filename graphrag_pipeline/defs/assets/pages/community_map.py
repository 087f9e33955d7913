"""The largest communities of the graph as a picture with a legend, for the pages of `graph` and `communities`.

Of each community the entities with the most relationships are drawn. `graph` is made before communities exist, so its
picture groups its entities with the most relationships by the same clustering. Keep out: drawing (`pictures.py`).
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.defs.assets.pages.metadata import as_table
from graphrag_pipeline.defs.assets.pages.pictures import DrawnCommunity, draw_communities, show_svg
from graphrag_pipeline.defs.assets.pages.stage_contents import StageContents

_N_COMMUNITIES = 8
_N_ENTITIES = 24  # of a community
_N_CLUSTERED = 300  # entities of the graph that are grouped before communities exist
_N_NAMED = 8
_MAX_EDGES = 2_000  # more cover the picture
_LEAST_SIZE = 2  # an entity alone shows nothing


def map_communities(contents: StageContents) -> str:
    """Return the picture of the largest communities of the coarsest level; "" if none has two entities."""
    communities = contents.read("communities", ("level", "size", "entity_ids"))
    coarsest = communities.filter(pc.equal(communities["level"], 0))
    entities = contents.read("entities", ("id", "title", "degree"))
    return _draw(coarsest, entities, contents, "Largest communities of level 0")


def map_graph(contents: StageContents) -> str:
    """Return the picture of the entities with the most relationships, grouped; "" if none is related."""
    from graphrag_pipeline.indexing.communities.detection import detect_communities
    from graphrag_pipeline.indexing.communities.leiden import LEAST_EFFORT

    entities = contents.read("entities", ("id", "title", "degree"))
    first = entities.sort_by([("degree", "descending"), ("title", "ascending")]).slice(0, _N_CLUSTERED)
    ids = first["id"].combine_chunks()
    edges = contents.read("relationships", ("id", "source_id", "target_id", "weight"))
    is_inside = pc.and_(pc.is_in(edges["source_id"], value_set=ids), pc.is_in(edges["target_id"], value_set=ids))
    settings = contents.root.settings.communities
    groups = detect_communities(first, edges.filter(is_inside), settings, effort=LEAST_EFFORT)
    coarsest = groups.filter(pc.equal(groups["level"], 0))
    return _draw(
        coarsest, first, contents, f"Largest groups among the {first.num_rows:,} entities with most relationships"
    )


def _draw(communities: pa.Table, entities: pa.Table, contents: StageContents, title: str) -> str:
    shown = _choose(communities, entities)
    if not shown:
        return ""
    titles = pa.array([title for drawn, _ in shown for title in drawn.titles], pa.string())
    edges = contents.read("relationships", ("source", "target", "weight"))
    is_shown = pc.and_(pc.is_in(edges["source"], value_set=titles), pc.is_in(edges["target"], value_set=titles))
    edges = edges.filter(is_shown)  # a few thousand of hundreds of thousands
    heaviest = edges.sort_by([("weight", "descending"), ("source", "ascending"), ("target", "ascending")])
    drawn_edges = heaviest.slice(0, _MAX_EDGES)
    pairs = list(zip(drawn_edges["source"].to_pylist(), drawn_edges["target"].to_pylist(), strict=True))
    picture = draw_communities([drawn for drawn, _ in shown], pairs)
    names = ("in the picture", "entities", "with the most relationships")
    rows = [(number, size, ", ".join(drawn.titles[:_N_NAMED])) for number, (drawn, size) in enumerate(shown, start=1)]
    left_out = f"The {_MAX_EDGES:,} heaviest of {edges.num_rows:,} relationships are drawn.\n\n"
    note = left_out if edges.num_rows > _MAX_EDGES else ""
    return f"{show_svg(title, picture)}\n\n{note}{as_table(names, rows, max_characters=400)}"


def _choose(communities: pa.Table, entities: pa.Table) -> Sequence[tuple[DrawnCommunity, int]]:
    """Return the largest communities with their sizes; ties by the titles of their entities."""
    columns = (entities[name].to_pylist() for name in ("id", "title", "degree"))
    known = {key: (-degree, title) for key, title, degree in zip(*columns, strict=True)}
    found = []
    for ids in communities["entity_ids"].to_pylist():
        members = sorted(known[key] for key in ids if key in known)
        if len(members) >= _LEAST_SIZE:
            first = members[:_N_ENTITIES]
            drawn = DrawnCommunity(tuple(title for _, title in first), tuple(-degree for degree, _ in first))
            found.append((drawn, len(members)))
    return sorted(found, key=lambda item: (-item[1], item[0].titles))[:_N_COMMUNITIES]
