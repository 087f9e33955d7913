"""Quality figures as lines of text: a table, then each warning with its advice.

Keep out: JSON (`measurement.IndexQuality.to_dict`) and Dagster's metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphrag_pipeline.evaluation.index_quality.figures import QualityFigure
from graphrag_pipeline.evaluation.index_quality.measurement import IndexQuality
from graphrag_pipeline.settings.quality import QualitySettings
from graphrag_pipeline.text.counted import counted


def render_quality(quality: IndexQuality, settings: QualitySettings, before: IndexQuality | None = None) -> list[str]:
    """Return the figures of a snapshot as lines; with those of another snapshot in a column of their own."""
    old = {figure.name: figure for figure in before.figures} if before else {}
    heading = ["figure", "value", *([before.snapshot[:8]] if before else []), "threshold", "", "about"]
    rows = [
        [
            figure.name,
            render_value(figure.value),
            *([render_value(old[figure.name].value)] if before else []),
            figure.render_threshold(settings),
            "WARN" if figure.is_low(settings) else "",
            figure.note,
        ]
        for figure in quality.figures
    ]
    lines = _align([heading, *rows])
    for figure in quality.warnings(settings):
        lines += ["", *_explain(figure, settings)]
    warned = counted(len(quality.warnings(settings)), "warnings")
    lines += ["", f"snapshot {quality.snapshot}, entities extracted by {quality.extractor}: {warned}"]
    return lines


def render_value(value: float | None) -> str:
    """Return a figure with three decimals; "-" if it was not measured."""
    return "-" if value is None else f"{value:.3f}"


def _explain(figure: QualityFigure, settings: QualitySettings) -> Iterator[str]:
    kind = figure.kind
    yield (
        f"{figure.name}: {kind.meaning} is {render_value(figure.value)}, wanted "
        f"{figure.render_threshold(settings)} (`quality.thresholds.{kind.option}`)"
    )
    yield f"  {kind.advice}"
    if figure.examples:
        yield f"  {kind.listed[0].upper()}{kind.listed[1:]}:"
    for example in figure.examples:
        yield f"  - {example}"


def _align(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
