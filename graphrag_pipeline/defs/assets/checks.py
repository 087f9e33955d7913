"""Asset checks: blocking ones on the candidate, in one step, and figures of quality on the published snapshot.

The former run between `index_candidate` and `index_snapshot`; a failing check stops the publication. A step for each
would take ten times as long as the checks of a small index. The share of failed records is checked at publication,
where the run lists them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import dagster as dg

from graphrag_pipeline.defs.assets.pages.metadata import of_lines
from graphrag_pipeline.defs.runs.errors import in_words
from graphrag_pipeline.defs.runs.executor import IndexRoot
from graphrag_pipeline.defs.runs.naming import ALLOW_REMOVAL_TAG, asset_key, full_name, has_option
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.index_quality.figures import FIGURES, QualityFigure
from graphrag_pipeline.evaluation.index_quality.measurement import IndexQuality, measure_quality
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import CANDIDATE, SNAPSHOT
from graphrag_pipeline.publishing.candidates import open_published
from graphrag_pipeline.publishing.checks import CHECKS, NEEDED, POLICY_CHECKS, check_removal
from graphrag_pipeline.settings.section import QualitySettings
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.text.safe_output import neutralize_markdown

_MIXED_PROMPTS = "mixed_prompts"
_REMOVED_DOCUMENTS = "removed_documents"
_MAX_LISTED = 20
_MAX_IN_LINE = 3  # in the line beside the check in the UI


@dataclass(frozen=True)
class _Judgement:
    """The result of a check.

    Attributes:
        line: what is wrong, or why it is allowed; "" if there is nothing to say.
        problems: all of them.
    """

    is_good: bool
    line: str
    problems: list[str]


_Judge = Callable[[dg.AssetCheckExecutionContext, Root, Snapshot], _Judgement]


def build_checks(of: Root) -> list[dg.AssetChecksDefinition]:
    """Return the checks of a root."""
    index_root, judges, described = IndexRoot.of(of), _judges(), _descriptions()
    key = asset_key(of, CANDIDATE.name)
    specs = [dg.AssetCheckSpec(name, asset=key, description=described[name], blocking=True) for name in judges]

    @dg.multi_asset_check(name=full_name(of, f"{CANDIDATE.name}_checks"), specs=specs, can_subset=True)
    def checks(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        root = index_root.open()
        snapshot = root.snapshots.open(root.tables.need(CANDIDATE.name).data_version)
        chosen = {check.name for check in context.selected_asset_check_keys}
        calls = {name: partial(judge, context, root, snapshot) for name, judge in judges.items() if name in chosen}
        yield from _judge_each(calls, snapshot.id)

    return [checks]


def _judge_each(calls: Mapping[str, Callable[[], _Judgement]], snapshot_id: str) -> Iterator[dg.AssetCheckResult]:
    """Yield the result of each check; then fail the step with the same words, which Dagster shows on the run's page.

    Raises:
        ExplainedError: a check failed.
    """
    failed = []
    for name, call in calls.items():
        found = call()
        yield _result(name, found, snapshot_id)
        if not found.is_good:
            failed.append(f"check {name} of the candidate failed: {found.line}")
            if name in NEEDED:
                break
    if failed:
        with in_words():
            raise PipelineError(f"{'. '.join(failed)}. The published snapshot stays")


def _judges() -> dict[str, _Judge]:
    return {
        **{name: partial(_judge, name) for name in CHECKS},
        _MIXED_PROMPTS: partial(_judge_policy, _MIXED_PROMPTS),
        _REMOVED_DOCUMENTS: _judge_removal,
    }


def _descriptions() -> dict[str, str]:
    by_name = {**CHECKS, _MIXED_PROMPTS: POLICY_CHECKS[_MIXED_PROMPTS], _REMOVED_DOCUMENTS: check_removal}
    return {name: check.__doc__ or "" for name, check in by_name.items()}


def _judge(name: str, _context: dg.AssetCheckExecutionContext, _root: Root, snapshot: Snapshot) -> _Judgement:
    return _judge_problems(CHECKS[name](snapshot))


def _judge_policy(name: str, _context: dg.AssetCheckExecutionContext, root: Root, snapshot: Snapshot) -> _Judgement:
    return _judge_problems(POLICY_CHECKS[name](snapshot, root.settings.publishing))


def _judge_problems(problems: list[str]) -> _Judgement:
    return _Judgement(not problems, "; ".join(problems[:_MAX_IN_LINE]), problems)


def _judge_removal(context: dg.AssetCheckExecutionContext, root: Root, snapshot: Snapshot) -> _Judgement:
    problems = check_removal(open_published(root.snapshots), snapshot, root.settings.publishing)
    is_allowed = has_option(context.run.tags, ALLOW_REMOVAL_TAG)
    way_out = f"In the UI, launch the run with the tag {ALLOW_REMOVAL_TAG}: true"
    line = "; ".join([*problems, "the run allows it" if is_allowed else way_out]) if problems else ""
    return _Judgement(is_allowed or not problems, line, problems)


def _result(name: str, found: _Judgement, snapshot_id: str) -> dg.AssetCheckResult:
    """Return the result with the number of problems, which plots over time, and the first of them."""
    each = of_lines("problems found, each", found.problems[:_MAX_LISTED])
    shown = {"problems found": len(found.problems), "snapshot": snapshot_id, **each}
    line = neutralize_markdown(found.line) or None
    return dg.AssetCheckResult(check_name=name, passed=found.is_good, description=line, metadata=shown)


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
            yield _judge_figure(figure, quality, settings)

    return index_quality


def _describe(name: str) -> str:
    kind = FIGURES[name]
    return f"{kind.meaning[0].upper()}{kind.meaning[1:]}; threshold `quality.thresholds.{kind.option}`."


def _judge_figure(figure: QualityFigure, quality: IndexQuality, settings: QualitySettings) -> dg.AssetCheckResult:
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
