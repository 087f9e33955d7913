"""Quality figures of the published snapshot in Dagster: numbers that plot over time, and checks that only warn.

One check per figure runs after `index_snapshot`, with severity WARN, and blocks nothing. If the figures cannot be
measured, the checks warn with the reason and the run goes on. Keep out: measuring (`evaluation/index_quality`).
"""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from graphrag_pipeline.defs.assets.pages.metadata import of_lines
from graphrag_pipeline.defs.runs.naming import asset_key, full_name
from graphrag_pipeline.defs.runs.resources import IndexRoot
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.index_quality.figures import FIGURES, QualityFigure
from graphrag_pipeline.evaluation.index_quality.measurement import IndexQuality, measure_quality
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import SNAPSHOT
from graphrag_pipeline.settings.section import QualitySettings
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.text.safe_output import neutralize_markdown

_DIGITS = 4


def of_quality(root: Root, snapshot_id: str, before: Snapshot | None = None) -> dict[str, Any]:
    """Return the quality figures of a snapshot as metadata; the reason if they cannot be measured.

    Args:
        before: the snapshot that was published before; None if it is unknown.
    """
    if not root.settings.quality.measure_after_publishing:
        return {}
    try:
        quality = measure_quality(root, root.snapshots.open(snapshot_id), before)
    except PipelineError as error:
        return {"quality not measured": str(error)}
    measured = ((FIGURES[f.name].meaning, f.value) for f in quality.figures if f.value is not None)
    figures = {f"quality: {meaning}": round(value, _DIGITS) for meaning, value in measured}
    return {"quality warnings": len(quality.warnings(root.settings.quality)), **figures}


def build_quality_checks(of: Root) -> dg.AssetChecksDefinition:
    """Return the checks that warn, one per figure."""
    index_root, key = IndexRoot.of(of), asset_key(of, SNAPSHOT.name)
    specs = [dg.AssetCheckSpec(name, asset=key, description=_describe(name)) for name in FIGURES]

    @dg.multi_asset_check(name=full_name(of, "index_quality"), specs=specs)
    def index_quality() -> Iterator[dg.AssetCheckResult]:
        root = index_root.open()
        settings = root.settings.quality
        if not settings.measure_after_publishing:
            yield from _pass_all("not measured: `quality.measure_after_publishing` is false")
            return
        try:
            quality = measure_quality(root, root.snapshots.open())
        except PipelineError as error:
            yield from _warn_all(f"not measured: {error}")
            return
        for figure in quality.figures:
            yield _judge(figure, quality, settings)

    return index_quality


def _describe(name: str) -> str:
    kind = FIGURES[name]
    return f"{kind.meaning[0].upper()}{kind.meaning[1:]}; threshold `quality.thresholds.{kind.option}`."


def _judge(figure: QualityFigure, quality: IndexQuality, settings: QualitySettings) -> dg.AssetCheckResult:
    is_low = figure.is_low(settings)
    shown: dict[str, Any] = {"value": figure.value} if figure.value is not None else {}
    threshold = figure.render_threshold(settings)
    return dg.AssetCheckResult(
        check_name=figure.name,
        passed=not is_low,
        severity=dg.AssetCheckSeverity.WARN,
        description=neutralize_markdown(f"{figure.note}. {figure.kind.advice}" if is_low else figure.note),
        metadata={
            **shown,
            "figures measured": int(figure.value is not None),
            "threshold": threshold or "none",
            **of_lines("examples", figure.examples),
            "snapshot": quality.snapshot,
            "extractor": quality.extractor,
        },
    )


def _pass_all(reason: str) -> Iterator[dg.AssetCheckResult]:
    for name in FIGURES:
        yield dg.AssetCheckResult(
            check_name=name, passed=True, description=neutralize_markdown(reason), metadata={"figures measured": 0}
        )


def _warn_all(reason: str) -> Iterator[dg.AssetCheckResult]:
    for name in FIGURES:
        yield dg.AssetCheckResult(
            check_name=name,
            passed=False,
            severity=dg.AssetCheckSeverity.WARN,
            description=neutralize_markdown(reason),
            metadata={"figures measured": 0},
        )
