"""Plots of time and memory by size of the corpus, for the page `size.md`.

Run by hand: `python -m graphrag_pipeline_tests.support.documentation.size_picture`.
Writes `docs/pictures/size.svg` from the figures below, which are those of the page's tables (1,400
articles by one process). Both axes are logarithmic.
"""

from __future__ import annotations

import math

from graphrag_pipeline_tests.support.paths import REPOSITORY

PICTURE = REPOSITORY / "docs" / "pictures" / "size.svg"
PLOTS = (
    (
        "Index of articles (embedded engine)",
        "articles",
        {"minutes of processor": [(1_400, 1.4), (5_600, 4.4), (20_000, 8.7)],
         "GB at the peak": [(1_400, 1.7), (5_600, 2.2), (20_000, 3.4)]},
    ),
    (
        "Graph and communities",
        "mentions of relationships",
        {"minutes of processor": [(5e6, 1.7), (10e6, 3.3), (50e6, 20.0)],
         "GB at the peak": [(5e6, 2.3), (10e6, 2.5), (50e6, 7.6)]},
    ),
)  # fmt: skip
WIDTH, HEIGHT, LEFT, TOP, GAP = 380, 220, 50, 50, 90
"""Pixels of a plot, of the margins, and between two plots."""
MOST, LEAST = 30.0, 1.0
TICKS = (1, 3, 10, 30)
COLORS = ("#2f6db5", "#c2571a")


def draw() -> str:
    """Return the SVG of all plots side by side."""
    total = LEFT + len(PLOTS) * (WIDTH + GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {TOP + HEIGHT + 60}" role="img" '
        'aria-label="Time and memory by the size of the corpus" font-family="DejaVu Sans, Arial, sans-serif" '
        'font-size="12" fill="#1c2733">',
        f'<rect width="{total}" height="{TOP + HEIGHT + 60}" rx="8" fill="#f8f9fb" stroke="#d5dbe3"/>',
    ]
    for number, (title, unit, curves) in enumerate(PLOTS):
        lines += _plot(LEFT + number * (WIDTH + GAP), title, unit, curves)
    return "\n".join([*lines, "</svg>", ""])


def _plot(left: int, title: str, unit: str, curves: dict[str, list[tuple[float, float]]]) -> list[str]:
    sizes = [size for size, _ in next(iter(curves.values()))]
    start, end = math.log(sizes[0]), math.log(sizes[-1])

    def across(size: float) -> float:
        return round(left + 20 + (math.log(size) - start) / (end - start) * (WIDTH - 40), 1)

    def up(value: float) -> float:
        return round(TOP + HEIGHT * (1 - math.log(value / LEAST) / math.log(MOST / LEAST)), 1)

    lines = [f'<text x="{left}" y="26" font-weight="bold">{title}</text>']
    for tick in TICKS:
        lines.append(f'<path d="M{left} {up(tick)}h{WIDTH}" stroke="#d5dbe3"/>')
        lines.append(f'<text x="{left - 8}" y="{up(tick) + 4}" text-anchor="end">{tick}</text>')
    for size in sizes:
        lines.append(f'<text x="{across(size)}" y="{TOP + HEIGHT + 20}" text-anchor="middle">{size:,.0f}</text>')
    lines.append(f'<text x="{left + WIDTH / 2}" y="{TOP + HEIGHT + 42}" text-anchor="middle">{unit}</text>')
    for (name, points), color in zip(curves.items(), COLORS, strict=True):
        path = " L".join(f"{across(size)} {up(value)}" for size, value in points)
        lines.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        lines += [f'<circle cx="{across(size)}" cy="{up(value)}" r="4" fill="{color}"/>' for size, value in points]
        place = 44 if color == COLORS[0] else 60
        lines.append(f'<text x="{left + 20}" y="{TOP + place - 30}" fill="{color}">{name}</text>')
    return lines


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
