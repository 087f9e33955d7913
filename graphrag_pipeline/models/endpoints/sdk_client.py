"""The OpenAI SDK's client of one endpoint, and the key it is opened with, read from the environment.

The key is in no message of ours. Keep out: sending (`endpoint.py`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.models.event_loop import http_client
from graphrag_pipeline.settings.models import ChatModelSettings, EmbeddingModelSettings

if TYPE_CHECKING:
    import openai

_NEEDS_KEY = ("api.openai.com", ".openai.azure.com")


def make_client(settings: ChatModelSettings | EmbeddingModelSettings, host: str) -> openai.AsyncOpenAI:
    """The SDK's client of an endpoint; retries are ours.

    Raises:
        SettingsError: the endpoint needs a key and there is none, or what is there cannot be one.
    """
    import openai

    key = _read_key(settings.api_key_env, host)
    shared: Any = {"timeout": settings.timeout_s, "max_retries": 0, "http_client": http_client()}
    if settings.api_version:
        return openai.AsyncAzureOpenAI(
            azure_endpoint=settings.base_url,
            api_version=settings.api_version,
            api_key=key,
            **shared,
        )
    return openai.AsyncOpenAI(base_url=settings.base_url, api_key=key, **shared)


def unset_hint(variable: str) -> str:
    """A remark for a message that names the variable of the key."""
    return "" if os.environ.get(variable, "").strip() else " (which is not set)"


def _read_key(variable: str, host: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not key and host.endswith(_NEEDS_KEY):
        raise SettingsError(f"{host} needs a key: put it into the environment variable {variable} (api_key_env)")
    if not (key.isascii() and key.isprintable()):
        raise SettingsError(f"the environment variable {variable} holds characters that no key has; set it again")
    return key or "none"
