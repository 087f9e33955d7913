"""Picture of the sample's knowledge graph.

Run by hand: `python -m graphrag_pipeline_tests.support.documentation.graph_picture`.
Writes `docs/pictures/sample_graph.svg`: the entities with the most relationships, colored by their community at level
0. The layout is seeded, so the same index gives the same bytes. Look at the picture before you commit it.
"""

from __future__ import annotations

import tempfile
from html import escape
from pathlib import Path
from string import capwords
from typing import Any

import networkx as nx

from graphrag_pipeline import GraphIndex
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline_tests.support.paths import REPOSITORY
from graphrag_pipeline_tests.support.roots import build_tables, make_root

PICTURE = REPOSITORY / "docs" / "pictures" / "sample_graph.svg"
N_ENTITIES = 34
WIDTH, HEIGHT = 960, 600
SIZES = ((WIDTH, 80), (HEIGHT, 40))
"""(length, margin) in pixels, across and down."""
COLORS = ("#2f6db5", "#c2571a", "#2e8b57", "#8a4fa3", "#b8860b", "#b03a5b", "#3a8f9e", "#6b6b6b")


def index_sample(folder: Path) -> GraphIndex:
    """Index the sample corpus as `make demo` does."""
    documents = {
        path.name: path.read_text(encoding="utf-8") for path in sorted((REPOSITORY / "data" / "input").glob("*.txt"))
    }
    settings = (REPOSITORY / "data" / "settings.yaml").read_text(encoding="utf-8")
    root = make_root(folder / "root", documents, settings)
    build_tables(root, tuple(ALL_STAGES))
    return GraphIndex.open(root.path)


def draw_graph(index: GraphIndex) -> str:
    """Return the SVG of the entities with the most relationships."""
    rows = index.snapshot.take("entities", range(index.snapshot.n_rows("entities")))
    shown = sorted(rows, key=lambda entity: (-entity["degree"], entity["title"]))[:N_ENTITIES]
    graph = nx.Graph()
    graph.add_nodes_from(entity["title"] for entity in shown)
    for edge in index.snapshot.take("relationships", range(index.snapshot.n_rows("relationships"))):
        if edge["source"] in graph and edge["target"] in graph:
            graph.add_edge(edge["source"], edge["target"], weight=edge["weight"])
    graph.remove_nodes_from(list(nx.isolates(graph)))
    places = nx.kamada_kawai_layout(graph, weight=None)
    groups = _communities_of(index)
    return _render(graph, places, groups, {entity["title"]: entity["degree"] for entity in shown})


def _communities_of(index: GraphIndex) -> dict[str, int]:
    """Title -> place of the entity's root community, the largest first."""
    titles = {
        row["id"]: row["title"] for row in index.snapshot.take("entities", range(index.snapshot.n_rows("entities")))
    }
    communities = index.snapshot.take("communities", range(index.snapshot.n_rows("communities")))
    roots = sorted((row for row in communities if row["level"] == 0), key=lambda row: (-row["size"], row["community"]))
    return {titles[entity]: place for place, row in enumerate(roots) for entity in row["entity_ids"]}


def _render(graph: nx.Graph, places: dict[str, Any], groups: dict[str, int], degrees: dict[str, int]) -> str:
    xs, ys = (_spread([float(places[title][axis]) for title in places], size) for axis, size in enumerate(SIZES))
    at = {title: (x, y) for title, x, y in zip(places, xs, ys, strict=True)}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="Knowledge graph of A Christmas Carol">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#f8f9fb" stroke="#d5dbe3"/>',
        '<g stroke="#9aa5b1" stroke-opacity="0.55">',
    ]
    for source, target in sorted(tuple(sorted(edge)) for edge in graph.edges):
        (x1, y1), (x2, y2) = at[source], at[target]
        width = 0.8 + min(4.0, 0.25 * graph.edges[source, target]["weight"])
        lines.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke-width="{width:.1f}"/>')
    lines.append(
        '</g><g font-family="DejaVu Sans, Arial, sans-serif" font-size="11" text-anchor="middle" fill="#1c2733">'
    )
    for title in sorted(graph, key=lambda title: (degrees[title], title)):
        (x, y), radius = at[title], 4 + min(12, degrees[title] * 0.35)
        color = COLORS[min(groups.get(title, len(COLORS)), len(COLORS) - 1)]
        lines.append(f'<circle cx="{x}" cy="{y}" r="{radius:.1f}" fill="{color}"/>')
        lines.append(f'<text x="{x}" y="{y - radius - 4:.1f}">{escape(capwords(title))}</text>')
    return "\n".join([*lines, "</g></svg>", ""])


def _spread(values: list[float], size: tuple[int, int]) -> list[int]:
    """Pixels of layout coordinates, so that they fill (length, margin)."""
    length, margin = size
    low, high = min(values), max(values)
    return [round(margin + (value - low) / (high - low) * (length - 2 * margin)) for value in values]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, index_sample(Path(folder)) as index:
        PICTURE.write_text(draw_graph(index), encoding="utf-8")
