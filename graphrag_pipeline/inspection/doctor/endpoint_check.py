"""Checks that concern every model: does the server answer, does it serve the model, which window does it tell?"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from graphrag_pipeline.inspection.doctor.findings import Finding
from graphrag_pipeline.models.endpoints.endpoint import ModelSettings
from graphrag_pipeline.models.endpoints.probe import ListedModel, list_models
from graphrag_pipeline.models.endpoints.problems import Problem
from graphrag_pipeline.models.endpoints.sdk_client import unset_hint

MOST_NAMED = 5


def check_endpoint(settings: ModelSettings) -> tuple[list[Finding], ListedModel | None]:
    """Return what the server says of itself, and the model as it lists it; a failed finding ends the examination."""
    found = list_models(settings)
    if isinstance(found, Problem):
        return [_explain(settings, found)], None
    answers = Finding("endpoint", "ok", f"{settings.base_url} answers and lists {len(found)} models")
    if not found:
        return [Finding("endpoint", "note", f"{settings.base_url} answers and lists no models")], None
    model = find_model(settings.model, found)
    return [answers, _name_model(settings, found) if model is None else _served(model)], model


def _explain(settings: ModelSettings, problem: Problem) -> Finding:
    if problem.is_unreachable or problem.is_timeout:
        return Finding("endpoint", "failed", f"no server at {settings.base_url}: {problem}. Start it or set base_url")
    if problem.status in (401, 403):
        variable = f"{settings.api_key_env}{unset_hint(settings.api_key_env)}"
        return Finding("endpoint", "failed", f"the key is refused ({problem}); set the environment variable {variable}")
    return Finding("endpoint", "note", f"{settings.base_url} does not list its models ({problem})")


def find_model(name: str, listed: Iterable[ListedModel]) -> ListedModel | None:
    """Return the model of a name; Ollama lists it with the tag `:latest`."""
    return next((one for one in listed if one.name in (name, f"{name}:latest")), None)


def _served(model: ListedModel) -> Finding:
    window = f", window {model.window:,} tokens" if model.window else ""
    return Finding("model", "ok", f"{model.name} is served{window}")


def _name_model(settings: ModelSettings, listed: list[ListedModel]) -> Finding:
    names = [one.name for one in listed]
    near = difflib.get_close_matches(settings.model, names, n=1, cutoff=0.4)
    others = ", ".join(near or names[:MOST_NAMED])
    setting = {"model": near[0]} if near else {}
    return Finding("model", "note", f"{settings.model!r} is not in the list of models; it names {others}", setting)
