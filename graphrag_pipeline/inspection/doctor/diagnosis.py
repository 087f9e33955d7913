"""The diagnosis of a root: each model that a step uses, what to set, what rows are, and what the next run will take."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.inspection.corpus_sample import HIGH, LOW
from graphrag_pipeline.inspection.costs import StageEstimate
from graphrag_pipeline.inspection.doctor.checks import (
    Examination,
    Speed,
    check_further,
    examine_chat_model,
    examine_embedding_model,
    examine_rerank_model,
)
from graphrag_pipeline.inspection.doctor.tables import propose_tables
from graphrag_pipeline.inspection.estimates import estimate_index
from graphrag_pipeline.inspection.extraction_room import explain_excess
from graphrag_pipeline.models.accounting import Caller
from graphrag_pipeline.models.endpoints.openai_embedder import EMBEDDINGS_PATH
from graphrag_pipeline.models.endpoints.places import ModelSettings
from graphrag_pipeline.models.endpoints.probe import EndpointProbe
from graphrag_pipeline.models.ports import can_search
from graphrag_pipeline.models.spending import Spending
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.pipeline.staleness import find_stale
from graphrag_pipeline.settings.models import ChatModelSettings, EmbeddingModelSettings, RerankModelSettings
from graphrag_pipeline.settings.presets import model_sections
from graphrag_pipeline.text.counted import counted

PROBE_TIMEOUT_S = 120.0
EMBEDDING_SECTION = "embedding_model"
RERANK_SECTION = "rerank_model"


@dataclass(frozen=True)
class StageForecast:
    """Calls and time of one stage of the next index run; `is_scaled` if they are estimated."""

    stage: str
    n_calls: int
    seconds: float
    cost: float | None
    is_scaled: bool = False


@dataclass(frozen=True)
class Diagnosis:
    """All that `doctor` found.

    Attributes:
        forecast: of the next index run; None if it is not known, for the reason in `why_no_forecast`.
        does_not_fit: why the extraction prompt does not fit the window of its model; "" if it does or is not known.
        tables: mappings to put into `input.tables`, for files of rows without one.
    """

    examinations: tuple[Examination, ...]
    forecast: tuple[StageForecast, ...] | None
    why_no_forecast: str = ""
    does_not_fit: str = ""
    tables: tuple[dict[str, Any], ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether a check of a model failed."""
        return any(one.has_failed for one in self.examinations)

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """What to set in settings.yaml: section -> option -> value."""
        found: dict[str, dict[str, Any]] = {}
        for one in self.examinations:
            if one.settings:
                found.setdefault(one.section, {}).update(one.settings)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return plain values; infinite speeds are None."""
        return {
            "has_failed": self.has_failed,
            "models": [
                {**asdict(one), "speed": _finite(asdict(one.speed)) if one.speed else None} for one in self.examinations
            ],
            "settings": self.settings,
            "forecast": None if self.forecast is None else [asdict(one) for one in self.forecast],
            "why_no_forecast": self.why_no_forecast,
            "does_not_fit": self.does_not_fit,
            "tables": list(self.tables),
        }


def diagnose(root: Root) -> Diagnosis:
    """Send small requests to every model of a root, and forecast the next index run by their speeds.

    The calls count in the accounts of the root and in its budget.
    """
    settings, examinations, speeds = root.settings, list[Examination](), dict[str, Speed]()
    spending, caller = root.models.spending, Caller(root.accounts)
    # Each distinct chat model by the names of the sections that use it.
    sections: dict[str, list[str]] = {}
    models: dict[str, ChatModelSettings] = {}
    for section in (*model_sections(), "resolution"):
        if getattr(settings, section).engine == "model":
            model = settings.chat_model_for(section)
            sections.setdefault(model.model_dump_json(), []).append(section)
            models[model.model_dump_json()] = model
    for names, chat in {tuple(sections[key]): model for key, model in models.items()}.items():
        probes = _open_probes(chat, spending, caller)
        examined = examine_chat_model(_owner(names), chat, probes[0], root.models.known_forms)
        examinations += [examined, *check_further(_owner(names), probes)]
        speeds |= {name: examined.speed for name in names if examined.speed}
    if settings.embeddings.engine == "model":
        embedding = settings.embedding_model
        probes = _open_probes(embedding, spending, caller)
        examined = examine_embedding_model(EMBEDDING_SECTION, embedding, probes[0], _published_dimensions(root))
        examinations += [examined, *check_further(EMBEDDING_SECTION, probes)]
        _keep_batch_size(root, embedding, EMBEDDINGS_PATH, examined)
        speeds |= {EMBEDDING_SECTION: examined.speed} if examined.speed else {}
    rerank = settings.rerank_model
    if rerank.model:
        probes = _open_probes(rerank, spending, caller)
        examined = examine_rerank_model(RERANK_SECTION, rerank, probes[0])
        examinations += [examined, *check_further(RERANK_SECTION, probes)]
        _keep_batch_size(root, rerank, rerank.path, examined)
    forecast, reason = _forecast(root, speeds)
    return Diagnosis(tuple(examinations), forecast, reason, explain_excess(root), _propose_tables(root))


def _open_probes(settings: ModelSettings, spending: Spending, caller: Caller) -> list[EndpointProbe]:
    """Return a probe of each endpoint of a model."""
    return [EndpointProbe(place, spending, caller, PROBE_TIMEOUT_S) for place in settings.places]


def _propose_tables(root: Root) -> tuple[dict[str, Any], ...]:
    try:
        return tuple(propose_tables(root.read_input(), root.settings.input))
    except PipelineError:
        return ()  # without an input folder, the forecast says so


def _keep_batch_size(
    root: Root, settings: EmbeddingModelSettings | RerankModelSettings, path: str, examined: Examination
) -> None:
    """Keep the largest batch that the endpoint takes for later commands, or that it takes those of the settings."""
    if any(finding.check == "batch" for finding in examined.findings):
        size = examined.settings.get("batch_size")
        root.models.known_batches.write(settings.base_url, path, settings.model, fact=size).result()


def _published_dimensions(root: Root) -> int | None:
    """Return the length of the vectors of the published index; None without one, or if another model made them."""
    manifest = root.snapshots.current_manifest()
    is_of_model = manifest is not None and can_search(root.embedder, manifest.embedding_fingerprint)
    return manifest.dimensions if manifest is not None and is_of_model else None


def _owner(sections: Sequence[str]) -> str:
    return "chat_model" if len(sections) > 1 else f"{sections[0]}.model"


def _forecast(root: Root, speeds: Mapping[str, Speed]) -> tuple[tuple[StageForecast, ...] | None, str]:
    try:
        manifests = detect_input(root)
        if not any(manifest.num_rows for manifest in manifests.values()):
            return None, f"no document is in {root.settings.input.folder}; put documents there, then run doctor again"
        estimates = estimate_index(root, find_stale(root, manifests))
    except PipelineError as error:
        return None, str(error)
    found = []
    for estimate in estimates:
        speed = speeds.get(_model_of(estimate))
        if speed is None and estimate.n_calls:
            return None, f"the speed of the model of {estimate.stage} is not known"
        tokens = estimate.prompt_tokens, estimate.completion_tokens
        seconds = speed.seconds(*tokens, estimate.n_calls) if speed else 0.0
        found.append(StageForecast(estimate.stage, estimate.n_calls, seconds, estimate.cost, estimate.is_scaled))
    return tuple(found), "" if estimates else "no step of the index is stale, or none uses a model"


def _model_of(estimate: StageEstimate) -> str:
    return EMBEDDING_SECTION if estimate.stage.endswith("_embeddings") else str(STAGES[estimate.stage].engine)


def _finite(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def render_diagnosis(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the lines of a diagnosis for a terminal."""
    import yaml

    if not diagnosis.examinations:
        yield "No step uses a model: there is nothing to check."
    for one in diagnosis.examinations:
        yield f"{one.section}: {one.title}"
        for finding in one.findings:
            yield f"  {finding.status:<6}  {finding.check}: {finding.text}"
    if diagnosis.does_not_fit:
        yield f"Text units do not fit: {diagnosis.does_not_fit}"
    if diagnosis.settings:
        yield "Set in settings.yaml:"
        # The settings with `reports.model` as a mapping in `reports`.
        nested: dict[str, Any] = {}
        for section, options in diagnosis.settings.items():
            first, _, rest = section.partition(".")
            nested[first] = {rest: dict(options)} if rest else dict(options)
        for line in yaml.safe_dump(nested, sort_keys=False).splitlines():
            yield f"  {line}"
    if diagnosis.tables:
        yield "Rows can be exact entities and relationships. Correct this guess, and set in settings.yaml:"
        tables = {"input": {"tables": list(diagnosis.tables)}}
        yield from (f"  {line}" for line in yaml.safe_dump(tables, sort_keys=False, allow_unicode=True).splitlines())
    yield from _render_forecast(diagnosis)


def _render_forecast(diagnosis: Diagnosis) -> Iterator[str]:
    if not diagnosis.examinations:
        return
    if not diagnosis.forecast:
        yield f"Next index run: no forecast ({diagnosis.why_no_forecast})"
        return
    total = sum(one.seconds for one in diagnosis.forecast)
    n_calls = sum(one.n_calls for one in diagnosis.forecast)
    yield f"Next index run: about {_duration(total)} for {counted(n_calls, 'calls')}, at the speed measured"
    for one in diagnosis.forecast:
        yield f"  {one.stage}: {'~' * one.is_scaled}{counted(one.n_calls, 'calls')}, {_duration(one.seconds)}"
    if any(one.is_scaled for one in diagnosis.forecast):
        times = f"{LOW:g} to {HIGH:g} times as many"
        yield f"~ is an estimate from the present index or from rules on a sample of this corpus; {times} are likely"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
