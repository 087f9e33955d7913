"""Pictures inside markdown, as SVG: bars, and the largest communities of the graph.

Equal input gives equal bytes: places come from ranks and angles. Pictures have a white ground, so that they are legible
in the light and the dark theme. They are text, so no drawing library is loaded in an index run.
"""

import base64
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TypeAlias

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.defs.assets.pages.metadata import as_table
from graphrag_pipeline.defs.assets.pages.stage_contents import StageContents

_COLORS = ("#4f43dd", "#d9480f", "#2b8a3e", "#a61e4d", "#1971c2", "#946200", "#495057", "#0b7285")


_INK, _EDGE = "#212529", "#adb5bd"


_WIDTH, _HEIGHT = 864, 595  # pixels, as all lengths below


_MARGIN_X, _MARGIN_Y = 78, 30


_GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))


_MAX_TITLE = 22  # characters


_STEP = 0.95  # between entities of a community, in units of the picture


_ABOVE = 1.2  # from the highest entity of a community to its number, in the same units


_FONT_SIZE = 11


_WIDE, _CAPITAL, _OTHER = 1.0, 0.72, 0.6  # widths of characters, in sizes of the font


_SIDES = ((11, "start", 4), (-11, "end", 4), (0, "middle", -9), (0, "middle", 17))


"""Places of a name beside its entity: distance to the right, alignment, and distance down to the line of the text."""


_N_LABELS = 4  # entities of a community that are named in the picture

_Places: TypeAlias = "dict[str, tuple[float, float]]"


_Box: TypeAlias = "tuple[float, float, float, float]"  # left, top, right, bottom


@dataclass(frozen=True)
class DrawnCommunity:
    """A community in a picture.

    Attributes:
        titles: of its entities, those with the most relationships first.
        degrees: numbers of relationships, in the same order.
    """

    titles: tuple[str, ...]
    degrees: tuple[int, ...]


def draw_communities(communities: Sequence[DrawnCommunity], edges: Sequence[tuple[str, str]]) -> str:
    """Return an SVG in which each community is a disc of its entities.

    Args:
        communities: the largest first.
        edges: pairs of titles; a pair with a title outside the communities is not drawn.
    """
    places, numbers = _fit(_place(communities), communities)
    parts = [
        f'<rect width="100%" height="100%" fill="#fff"/><path d="{_join_edges(places, edges)}" stroke="{_EDGE}" '
        'stroke-opacity="0.6" stroke-width="0.9"/>'
    ]
    for number, community in enumerate(communities):
        parts.append(_draw_entities(community, places, _COLORS[number % len(_COLORS)]))
    parts.append(f'<g fill="{_INK}" stroke="#fff" stroke-width="3" paint-order="stroke">')
    parts += _name_entities(communities, places)
    parts.append('</g><g fill="#fff" stroke-width="2" text-anchor="middle">')
    for number, (x, y) in enumerate(numbers):
        color = _COLORS[number % len(_COLORS)]
        parts.append(
            f'<circle cx="{x:.0f}" cy="{y:.0f}" r="10.5" stroke="{color}"/><text x="{x:.0f}" y="{y + 4.5:.0f}" '
            f'font-size="13" font-weight="bold" fill="{color}" stroke="none">{number + 1}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'font-family="sans-serif" font-size="{_FONT_SIZE}" fill="none">{"".join(parts)}</g></svg>'
    )


def _place(communities: Sequence[DrawnCommunity]) -> _Places:
    """Return title -> place: communities around an ellipse, their entities in a spiral from the centre."""
    radii = [_STEP * np.sqrt(len(community.titles)) + 1.2 for community in communities]
    reach = sum(radii) / np.pi * 1.05 if len(radii) > 1 else 0.0
    angles = np.cumsum([0.0, *(first + second for first, second in pairwise(radii))])
    turn = 2 * np.pi / (angles[-1] + radii[-1] + radii[0])
    places = {}
    for community, angle in zip(communities, angles * turn, strict=False):
        centre = np.array([1.45 * np.cos(angle), -np.sin(angle)]) * reach
        for rank, title in enumerate(community.titles):
            spiral = np.array([np.cos(rank * _GOLDEN_ANGLE), -np.sin(rank * _GOLDEN_ANGLE)]) * _STEP * np.sqrt(rank)
            places[title] = tuple(centre + spiral)
    return places


def _fit(places: _Places, communities: Sequence[DrawnCommunity]) -> tuple[_Places, list[tuple[float, float]]]:
    """Return the places of the entities and of the numbers above their communities, in pixels."""
    points = np.array(list(places.values()))
    above = []
    for community in communities:
        own = np.array([places[title] for title in community.titles])
        above.append((own[0, 0], own[:, 1].min() - _ABOVE))
    whole = np.concatenate([points, above])
    low, high = whole.min(axis=0), whole.max(axis=0)
    room = np.array([_WIDTH - 2 * _MARGIN_X, _HEIGHT - 2 * _MARGIN_Y])
    scale = (room / np.maximum(high - low, 1.0)).min()
    shift = np.array([_WIDTH, _HEIGHT]) / 2 - scale * (low + high) / 2
    pixels = whole * scale + shift
    found = [(float(x), float(y)) for x, y in pixels]
    return dict(zip(places, found[: len(points)], strict=True)), found[len(points) :]


def _join_edges(places: _Places, edges: Sequence[tuple[str, str]]) -> str:
    """Return one path of all edges; each starts from the end of the one before, in whole pixels."""
    path, x, y = [], 0, 0
    for first, second in edges:
        if first in places and second in places:
            (x1, y1), (x2, y2) = ((round(a), round(b)) for a, b in (places[first], places[second]))
            path.append(f"m{x1 - x} {y1 - y}l{x2 - x1} {y2 - y1}")
            x, y = x2, y2
    return "M0 0" + "".join(path).replace(" -", "-")


def _draw_entities(community: DrawnCommunity, places: _Places, color: str) -> str:
    circles = []
    for title, degree in zip(community.titles, community.degrees, strict=True):
        x, y = places[title]
        radius = np.sqrt(24 + 26 * np.sqrt(degree)) * 2 / 3
        circles.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>')
    return f'<g fill="{color}" stroke="#fff" stroke-width="0.8">{"".join(circles)}</g>'


def _name_entities(communities: Sequence[DrawnCommunity], places: _Places) -> Iterator[str]:
    """Yield the names of the first entities of each community, where no other name is."""
    ranked = [
        community.titles[rank] for rank in range(_N_LABELS) for community in communities if rank < len(community.titles)
    ]
    taken: list[_Box] = []
    for title in ranked:
        text, (x, y) = _shorten(title), places[title]
        for right, anchor, down in _SIDES:
            box = _box_of(text, x + right, y + down, anchor)
            if _is_inside(box) and not any(_overlaps(box, other) for other in taken):
                taken.append(box)
                yield f'<text x="{x + right:.0f}" y="{y + down:.0f}" text-anchor="{anchor}">{_as_xml(text)}</text>'
                break


def _box_of(text: str, x: float, y: float, anchor: str) -> _Box:
    """Return about the room of a text; browsers choose the font."""
    width = _FONT_SIZE * sum(map(_width_of, text))
    left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
    return left, y - _FONT_SIZE, left + width, y + 0.3 * _FONT_SIZE


def _width_of(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF":
        return _WIDE
    return _CAPITAL if character.isupper() else _OTHER


def _is_inside(box: _Box) -> bool:
    left, top, right, bottom = box
    return left >= 0 and top >= 0 and right <= _WIDTH and bottom <= _HEIGHT


def _overlaps(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _shorten(title: str) -> str:
    return title if len(title) <= _MAX_TITLE else title[: _MAX_TITLE - 1] + "\u2026"


def _as_xml(text: str) -> str:
    """Return a text for XML, which has no control characters."""
    return escape("".join(" " if unicodedata.category(c) in ("Cc", "Cs", "Cn") else c for c in text), quote=False)


def show_svg(title: str, svg: str) -> str:
    """Return markdown that shows a picture."""
    return f"![{title}](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"


def plot_bars(title: str, bars: list[tuple[str, int]] | list[tuple[str, float]]) -> dg.MarkdownMetadataValue:
    """Return a bar chart as an SVG picture inside markdown."""
    height, width = 22, 520
    most = max(count for _, count in bars)
    rows = []
    for row, (label, count) in enumerate(bars):
        y, length = 30 + row * height, max(1, round(360 * count / (most or 1)))
        rows.append(f'<text x="70" y="{y + 14}" text-anchor="end">{label}</text>')
        rows.append(f'<rect x="78" y="{y + 2}" width="{length}" height="{height - 6}" fill="#4f43dd"/>')
        rows.append(f'<text x="{84 + length}" y="{y + 14}">{count:,}</text>')
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{40 + len(bars) * height}" '
        f'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="10" y="18" font-weight="bold">{title}</text>{"".join(rows)}</svg>'
    )
    return dg.MetadataValue.md(show_svg(title, svg))


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
