"""Settings of a new root that uses models: which steps, and what is known about common servers.

A preset is a starting point that `init` writes to settings.yaml, where the user changes it; nothing reads a preset
later. Add a server here, as a `Preset`. Keep out: what a server says of itself (`doctor` asks it).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.settings.models import OPENAI_URL
from graphrag_pipeline.settings.settings import Settings

LOCAL_TIMEOUT_S = 600.0
LOCAL_MAP_TOKENS = 4000
"""Cap of the points from one batch: a small model that never ends would run into the timeout."""
_LOCAL = {"timeout_s": LOCAL_TIMEOUT_S}
_FREE = {"prompt_price": 0.0, "completion_price": 0.0}

MIXED_SECTIONS = ("answers",)
"""Steps of the chat model with `init --engine mixed`: a small model writes answers, rules and vectors do the rest."""


@dataclass(frozen=True)
class Preset:
    """What is known about a server.

    Attributes:
        name: for people.
        base_url: where the server listens by default; empty if every user has an address of their own.
        chat, embedding: options of `chat_model` and `embedding_model`.
        answers: options of `answers`, if a chat model writes them.
        notes: what a user should know about the server, one sentence each.
    """

    name: str
    base_url: str
    chat: Mapping[str, Any] = field(default_factory=dict)
    embedding: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    answers: Mapping[str, Any] = field(default_factory=dict)


def _local(name: str, base_url: str, concurrency: int, *notes: str) -> Preset:
    """A server on the user's own machine: slow, with an embedder that reads 512 tokens; free if it is known by name.

    A server that is known only by its address may be a proxy to a provider who charges.
    """
    chat_price, embedding_price = (_FREE, {"prompt_price": 0.0}) if base_url else ({}, {})
    chat = {
        **_LOCAL,
        **chat_price,
        "max_concurrency": concurrency,
        "parameters": {"temperature": 0},
        "stop_loops": True,
    }
    batches = {"max_concurrency": min(concurrency, 2), "batch_size": 16, "batch_max_tokens": 450}
    embedding = {**_LOCAL, **embedding_price, **batches}
    return Preset(name, base_url, chat, embedding, notes, {"max_map_tokens": LOCAL_MAP_TOKENS})


ANY_LOCAL = _local("a local server", "", 4)
PRESETS: Mapping[str, Preset] = {
    "openai": Preset("OpenAI", OPENAI_URL),
    "azure": Preset(
        "Azure OpenAI",
        "",
        chat={"api_version": "2024-10-21", "api_key_env": "AZURE_OPENAI_API_KEY"},
        embedding={"api_version": "2024-10-21", "api_key_env": "AZURE_OPENAI_API_KEY"},
        notes=("The names of the models are the names of your deployments.",),
    ),
    "ollama": _local(
        "Ollama",
        "http://localhost:11434/v1",
        4,
        "Ollama silently cuts a prompt that is longer than its context: start it with OLLAMA_CONTEXT_LENGTH=16384 or "
        "more, and set `chat_model.context_window` to the same number.",
    ),
    "llamacpp": _local(
        "llama.cpp",
        "http://localhost:8080/v1",
        1,
        "llama-server shares its context among its slots: `-c 16384 -np 2` gives each request 8,192 tokens.",
    ),
    "vllm": Preset(
        "vLLM",
        "http://localhost:8000/v1",
        chat={**_LOCAL, **_FREE, "max_concurrency": 32, "parameters": {"temperature": 0}},
        embedding={**_LOCAL, "prompt_price": 0.0, "max_concurrency": 4, "batch_max_tokens": 450},
        notes=("vLLM serves many requests at once, so max_concurrency is 32; lower it if calls time out.",),
    ),
}
"""Servers that `init --preset` knows."""


def preset_for(name: str | None, base_url: str | None) -> Preset | None:
    """Return the named preset, else that of a local server for an address of this machine, else None.

    Raises:
        SettingsError: no preset has this name, or the preset needs an address and none is given.
    """
    if name is None:
        return ANY_LOCAL if base_url and is_loopback(base_url) else None
    if name not in PRESETS:
        raise SettingsError(f"{name!r} is not a preset; the presets are {', '.join(PRESETS)}")
    if not (PRESETS[name].base_url or base_url):
        raise SettingsError(f"the preset {name} needs the address of your server; pass it with --base-url")
    return PRESETS[name]


def is_loopback(url: str) -> bool:
    """Whether a URL leads to this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def settings_for_model(
    chat_model: str,
    embedding_model: str | None,
    base_url: str | None = None,
    api_key_env: str | None = None,
    *,
    embedding_base_url: str | None = None,
    rating_model: str | None = None,
    preset: Preset | None = None,
    sections: Collection[str] | None = None,
) -> Settings:
    """Return settings in which steps use a model.

    Args:
        embedding_model: None keeps the bundled embeddings.
        base_url, api_key_env: of both models; None: the preset's, else OpenAI's.
        embedding_base_url: of the embedding model, if it has an address of its own.
        rating_model: a cheaper chat model at the same address, which rates; None: the chat model, where it rates.
        preset: options of both models.
        sections: of the steps of the chat model; None: all but `resolution`, which stays with rules until set.

    Raises:
        SettingsError: a value does not validate; the message never repeats a key given as a variable name.
    """
    preset = preset or Preset("", "")
    place = {"base_url": base_url or preset.base_url, "api_key_env": api_key_env}
    endpoint = {name: value for name, value in place.items() if value}
    values: dict[str, dict[str, Any]] = {"chat_model": {**preset.chat, "model": chat_model, **endpoint}}
    for section in model_sections() if sections is None else sections:
        values[section] = {"engine": "model", **(preset.answers if section == "answers" else {})}
    if rating_model:
        values["rating"] = {"engine": "model", "model": {"model": rating_model}}
    if embedding_model:
        own = preset.embedding
        if embedding_base_url:
            endpoint["base_url"] = embedding_base_url
            own = ANY_LOCAL.embedding if is_loopback(embedding_base_url) else {}
        values["embedding_model"] = {**own, "model": embedding_model, **endpoint}
        values["embeddings"] = {"engine": "model"}
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        problem = error.errors()[0]
        raise SettingsError(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from None


def model_sections() -> tuple[str, ...]:
    """Return the sections that `init --engine model` gives to the chat model: all but `resolution`."""
    return tuple(
        section
        for section, option in Settings.model_fields.items()
        if {"engine", "model"} <= type(option.default).model_fields.keys() and section != "resolution"
    )
