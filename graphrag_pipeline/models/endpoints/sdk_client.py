"""OpenAI SDK client of one endpoint, opened with the API key from the environment.

No message contains the key.

Keep out: sending (`endpoint.py`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.models.event_loop import http_client
from graphrag_pipeline.settings.models import ChatModelSettings, EmbeddingModelSettings, RerankModelSettings

if TYPE_CHECKING:
    import openai

NO_KEY = "none"
"""What is sent to a server that needs no key."""
_NEEDS_KEY = ("api.openai.com", ".openai.azure.com")


def make_client(
    settings: ChatModelSettings | EmbeddingModelSettings | RerankModelSettings, host: str
) -> openai.AsyncOpenAI:
    """Open the SDK client of an endpoint, without the retries of the SDK (`endpoint.py` retries).

    Raises:
        SettingsError: the endpoint needs a key and the variable is empty, or its value cannot be a key.
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
    """Return an addition to the name of the key's variable in a message: whether it is not set."""
    return "" if os.environ.get(variable, "").strip() else " (which is not set)"


def _read_key(variable: str, host: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not key and host.endswith(_NEEDS_KEY):
        raise SettingsError(f"{host} needs a key: set the environment variable {variable} (named by api_key_env)")
    if not (key.isascii() and key.isprintable()):
        raise SettingsError(
            f"the environment variable {variable} holds characters that a key cannot have; set it again"
        )
    return key or NO_KEY
