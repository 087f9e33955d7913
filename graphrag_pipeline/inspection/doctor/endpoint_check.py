"""Checks that concern every model: does the server answer, does it serve the model, which window does it tell?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.inspection.doctor.findings import Finding
from graphrag_pipeline.models.endpoints.endpoint import ModelSettings
from graphrag_pipeline.models.endpoints.probe import ListedModel, find_model, list_models
from graphrag_pipeline.models.endpoints.problems import Problem
from graphrag_pipeline.models.endpoints.sdk_client import unset_hint
from graphrag_pipeline.nearest import nearest_name
from graphrag_pipeline.settings.models import ChatModelSettings, EmbeddingModelSettings

MOST_NAMED = 5
_VECTORS = re.compile(r"embed|(^|[/_-])(bge|gte|e5)[_-](?!.*rerank)|minilm")
_RANKS = re.compile(r"rerank")
"""Signs in a name that a model makes vectors, or orders texts."""
USUAL_PATH = "/v1"
REFUSED = "the connection is refused"


def check_endpoint(settings: ModelSettings) -> tuple[list[Finding], ListedModel | None]:
    """Return what the server says of itself, and the model as it lists it; a failed finding ends the examination."""
    found = list_models(settings)
    if isinstance(found, Problem):
        return [_explain(settings, found)], None
    answers = Finding("endpoint", "ok", f"{settings.base_url} answers and lists {len(found)} models")
    if not found:
        return [Finding("endpoint", "note", f"{settings.base_url} answers and lists no models")], None
    model = find_model(settings.model, found)
    is_served = model is not None and model.is_named(settings.model)
    return [answers, _served(model) if model and is_served else _name_model(settings, found)], model


def _explain(settings: ModelSettings, problem: Problem) -> Finding:
    if problem.is_unreachable or problem.is_timeout:
        reason = REFUSED if "Connect call failed" in problem.message else problem
        return Finding("endpoint", "failed", f"no server at {settings.base_url}: {reason}. Start it or set base_url")
    if problem.status in (401, 403):
        variable = f"{settings.api_key_env}{unset_hint(settings.api_key_env)}"
        return Finding("endpoint", "failed", f"the key is refused ({problem}); set the environment variable {variable}")
    text = f"{settings.base_url} does not list its models ({problem})"
    if problem.status in (404, 405) and (other := _find_usual_address(settings)):
        return Finding("endpoint", "note", f"{text}, but {other} does", {"base_url": other})
    return Finding("endpoint", "note", text)


def _find_usual_address(settings: ModelSettings) -> str | None:
    """Return the address of the same server that ends in `/v1`, if it lists models."""
    parts = urlsplit(settings.base_url)
    other = urlunsplit((parts.scheme, parts.netloc, USUAL_PATH, "", ""))
    if other == settings.base_url.rstrip("/"):
        return None
    found = list_models(settings.model_copy(update={"base_url": other}))
    return None if isinstance(found, Problem) or not found else other


def explain_failure(settings: ModelSettings, error: PipelineError, findings: Sequence[Finding]) -> str:
    """Return what is wrong if requests fail, and what to set, by what the list of models said before."""
    said = str(error).partition(". Check the key")[0].partition("; replies so far")[0]
    if any(finding.check == "model" and finding.status == "note" for finding in findings):
        return f"{said}. Set `model` to one that the server lists"
    if findings and findings[0].status == "note" and "404" in said:
        return f"{said}. Nothing answers at this path: set base_url, which usually ends in {USUAL_PATH}"
    return said


def accept_other_name(settings: ModelSettings, findings: Sequence[Finding], model: ListedModel | None) -> list[Finding]:
    """Return the findings after a reply: a server whose only model has another name has then taken the one set."""
    if model is None or model.is_named(settings.model):
        return list(findings)
    text = f"the server lists {model.name} only and answers {settings.model!r} too: it takes any name"
    accepted = Finding("model", "ok", f"{text}{_window_text(model)}")
    return [accepted if finding.check == "model" else finding for finding in findings]


def _served(model: ListedModel) -> Finding:
    return Finding("model", "ok", f"{model.name} is served{_window_text(model)}")


def _window_text(model: ListedModel) -> str:
    return f", window {model.window:,} tokens" if model.window else ""


def _of_kind(settings: ModelSettings, names: list[str]) -> list[str]:
    """Return the names that say no other kind of model than the one of the settings; all if none is left."""
    is_other = {"chat": (_VECTORS, _RANKS), "embed": (_RANKS,), "rerank": (_VECTORS,)}[_kind_of(settings)]
    return [name for name in names if not any(kind.search(name.casefold()) for kind in is_other)] or names


def _kind_of(settings: ModelSettings) -> str:
    if isinstance(settings, ChatModelSettings):
        return "chat"
    return "embed" if isinstance(settings, EmbeddingModelSettings) else "rerank"


def _name_model(settings: ModelSettings, listed: list[ListedModel]) -> Finding:
    names = _of_kind(settings, [one.name for one in listed])
    near = nearest_name(settings.model, names)
    others = near or ", ".join(names[:MOST_NAMED])
    setting = {"model": near} if near else {}
    return Finding("model", "note", f"{settings.model!r} is not in the list of models; it names {others}", setting)
