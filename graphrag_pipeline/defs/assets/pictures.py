"""Pictures inside markdown: bars as SVG, and the largest communities of the graph as PNG.

Equal input gives equal bytes: places come from ranks and angles, and the files hold no date. Pictures have a white
ground, so that they are legible in the light and the dark theme. Keep out: the choice of records (`community_map.py`).
"""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import dagster as dg
import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLORS = ("#4f43dd", "#d9480f", "#2b8a3e", "#a61e4d", "#1971c2", "#946200", "#495057", "#0b7285")
_INK, _EDGE = "#212529", "#adb5bd"
_SIZE, _DPI = (9.0, 6.2), 96  # inches; pixels an inch
_GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
_MAX_TITLE = 22  # characters
_STEP = 0.95  # between entities of a community, in units of the picture
_N_COLORS = 96
_COMPRESS_LEVEL = 6  # of zlib; 9 makes a file 5 % smaller in ten times the time
_SIDES = (
    ((8, 0), "left", "center"),
    ((-8, 0), "right", "center"),
    ((0, 7), "center", "bottom"),
    ((0, -7), "center", "top"),
)
"""Places of a name beside its entity: distance in points, and alignment."""
_N_LABELS = 4  # entities of a community that are named in the picture


@dataclass(frozen=True)
class DrawnCommunity:
    """A community in a picture.

    Attributes:
        titles: of its entities, those with the most relationships first.
        degrees: numbers of relationships, in the same order.
    """

    titles: tuple[str, ...]
    degrees: tuple[int, ...]


def draw_communities(communities: Sequence[DrawnCommunity], edges: Sequence[tuple[str, str]]) -> bytes:
    """Return a PNG in which each community is a disc of its entities.

    Args:
        communities: the largest first.
        edges: pairs of titles; a pair with a title outside the communities is not drawn.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, dpi=_DPI, facecolor="white")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_aspect("equal")
    places = _place(communities)
    _draw_edges(axes, places, edges)
    for number, community in enumerate(communities):
        _draw_community(axes, number, community, places)
    axes.margins(0.09, 0.05)
    axes.apply_aspect()
    _name_entities(axes, communities, places)
    return _as_png(figure)


def _as_png(figure: "Figure") -> bytes:
    """Return the picture with few colors: it is kept in Dagster's records of each run."""
    from PIL import Image

    figure.canvas.draw()
    size = figure.canvas.get_width_height()
    whole = Image.frombytes("RGBA", size, bytes(figure.canvas.buffer_rgba())).convert("RGB")  # type: ignore[attr-defined]
    file = io.BytesIO()
    few = whole.quantize(_N_COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(file, format="png", compress_level=_COMPRESS_LEVEL)
    return file.getvalue()


def _place(communities: Sequence[DrawnCommunity]) -> dict[str, tuple[float, float]]:
    """Return title -> place: communities around an ellipse, their entities in a spiral from the centre."""
    radii = [_STEP * np.sqrt(len(community.titles)) + 1.2 for community in communities]
    reach = sum(radii) / np.pi * 1.05 if len(radii) > 1 else 0.0
    angles = np.cumsum([0.0, *(first + second for first, second in pairwise(radii))])
    turn = 2 * np.pi / (angles[-1] + radii[-1] + radii[0])
    places = {}
    for community, angle in zip(communities, angles * turn, strict=False):
        centre = np.array([1.45 * np.cos(angle), np.sin(angle)]) * reach
        for rank, title in enumerate(community.titles):
            spiral = np.array([np.cos(rank * _GOLDEN_ANGLE), np.sin(rank * _GOLDEN_ANGLE)]) * _STEP * np.sqrt(rank)
            places[title] = tuple(centre + spiral)
    return places


def _draw_edges(axes: Any, places: dict[str, tuple[float, float]], edges: Sequence[tuple[str, str]]) -> None:
    from matplotlib.collections import LineCollection

    lines = [(places[first], places[second]) for first, second in edges if first in places and second in places]
    axes.add_collection(LineCollection(lines, colors=_EDGE, linewidths=0.7, alpha=0.6, zorder=1))


def _draw_community(axes: Any, number: int, community: DrawnCommunity, places: dict[str, tuple[float, float]]) -> None:
    """Draw the entities of a community, and its number above them."""
    points = np.array([places[title] for title in community.titles])
    color = _COLORS[number % len(_COLORS)]
    sizes = 24 + 26 * np.sqrt(np.array(community.degrees))
    axes.scatter(points[:, 0], points[:, 1], s=sizes, c=color, edgecolors="white", linewidths=0.6, zorder=2)
    top = (points[0, 0], points[:, 1].max() + 1.2)
    axes.scatter(*top, s=260, c="white", edgecolors=color, linewidths=1.5, zorder=5)
    axes.text(
        *top, str(number + 1), fontsize=10, color=color, ha="center", va="center_baseline", weight="bold", zorder=6
    )


def _name_entities(axes: Any, communities: Sequence[DrawnCommunity], places: dict[str, tuple[float, float]]) -> None:
    """Name the first entities of each community where no other name is, and only in characters that the font has."""
    from matplotlib.patheffects import withStroke

    style = {"fontsize": 8, "color": _INK, "zorder": 4, "parse_math": False, "textcoords": "offset points"}
    style["path_effects"] = [withStroke(linewidth=2.5, foreground="white")]
    ranked = [
        community.titles[rank] for rank in range(_N_LABELS) for community in communities if rank < len(community.titles)
    ]
    taken: list[Any] = []
    for title in filter(_is_drawable, ranked):
        for xytext, ha, va in _SIDES:
            label = axes.annotate(_shorten(title), places[title], xytext=xytext, ha=ha, va=va, **style)
            box = label.get_window_extent()
            if _is_inside(axes.bbox, box) and not box.count_overlaps(taken):
                taken.append(box)
                break
            label.remove()


def _is_inside(whole: Any, box: Any) -> bool:
    return bool(whole.contains(box.x0, box.y0) and whole.contains(box.x1, box.y1))


def _shorten(title: str) -> str:
    return title if len(title) <= _MAX_TITLE else title[: _MAX_TITLE - 1] + "\u2026"


def _is_drawable(title: str) -> bool:
    """Whether the font of the picture has every character of a title."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return {ord(character) for character in title} <= get_font(findfont(FontProperties())).get_charmap().keys()


def show_png(title: str, png: bytes) -> str:
    """Return markdown that shows a picture."""
    return f"![{title}](data:image/png;base64,{base64.b64encode(png).decode()})"


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
    return dg.MetadataValue.md(f"![{title}](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})")
