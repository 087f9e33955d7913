"""Settings of model endpoints: where a model is, how it is asked, how fast, and for how much money.

Add an option here, with a default and a description, if it belongs to an endpoint; what belongs to a step (its prompt,
its token budget) stays in that step's settings. Keep out: keys. Only the name of the environment variable that holds
one is a setting.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

OPENAI_URL = "https://api.openai.com/v1"

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# How keys start, or a piece as long and mixed as only keys have. A key with a hyphen is no variable's name anyway.
_KEY = re.compile(r"(?:sk|pk|rk|gsk|hf|xai|nvapi)_\w*\d|AIza|(?:.*_)?(?=[A-Za-z]*\d)[A-Za-z0-9]{20}")


class _Endpoint(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field("", description="Name of the model (Azure: of the deployment).")
    base_url: str = Field(OPENAI_URL, description="Address of an OpenAI-compatible endpoint (Azure: of the resource).")
    api_key_env: str = Field(
        "OPENAI_API_KEY", description="Environment variable that holds the key; local servers need none."
    )
    api_version: str | None = Field(None, description="Azure OpenAI only: the API version, such as 2024-10-21.")
    parameters: dict[str, Any] = Field(
        default_factory=dict, description="More parameters of a request, such as {temperature: 0}."
    )
    timeout_s: float = Field(180.0, gt=0, description="A request without a whole reply after this time is sent again.")
    max_attempts: int = Field(
        6, ge=1, description="Times a request is sent before it counts as failed (429 replies have their own limit)."
    )
    backoff_s: float = Field(0.5, ge=0, description="Wait before the first retry; it doubles each time, up to 60 s.")
    max_concurrency: int = Field(50, ge=1, le=1000, description="Most requests at once; fewer when told to slow down.")
    requests_per_minute: int | None = Field(
        None, ge=1, description="Most requests a minute, over all processes of the root."
    )
    tokens_per_minute: int | None = Field(
        None, ge=1, description="Most tokens a minute, over all processes of the root."
    )
    prompt_price: float | None = Field(
        None, ge=0, description="Money for a million prompt tokens, instead of the price list."
    )
    completion_price: float | None = Field(
        None, ge=0, description="Money for a million completion tokens, instead of the price list."
    )
    use_spans: bool = Field(
        False, description="Send OpenTelemetry spans, one for each request, if opentelemetry is installed."
    )

    @field_validator("api_version", mode="before")
    @classmethod
    def _date_is_text(cls, version: Any) -> Any:
        return version.isoformat() if isinstance(version, date) else version  # YAML reads 2024-10-21 as a date

    @field_validator("base_url")
    @classmethod
    def _is_web_address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("no http(s) URL, such as http://localhost:11434/v1")
        return url

    @field_validator("api_key_env")
    @classmethod
    def _names_a_variable(cls, name: str) -> str:
        if not _VARIABLE.fullmatch(name) or _KEY.match(name):
            raise ValueError(
                "not the name of an environment variable; put the key into one, such as OPENAI_API_KEY, and name that "
                "one here (if a key was written here, take it out)"
            )
        return name


class ChatModelSettings(_Endpoint):
    """A chat model behind an OpenAI-compatible endpoint."""


class EmbeddingModelSettings(_Endpoint):
    """An embedding model behind an OpenAI-compatible endpoint."""

    max_concurrency: int = Field(16, ge=1, le=1000, description="Most requests at once; fewer when told to slow down.")
    dimensions: int | None = Field(
        None, ge=1, description="Length of a vector to ask for, if the model has several; else found at first use."
    )
    batch_size: int = Field(64, ge=1, description="Most texts in one request.")
    batch_max_tokens: int = Field(
        8000,
        ge=16,
        description="Most tokens of one text; a longer one is split and its vectors averaged (450 for a limit of 512).",
    )
    batch_max_tokens_per_request: int = Field(100_000, ge=16, description="Most tokens in one request.")


class BudgetSettings(BaseModel):
    """The most that all runs of a root together may spend on models."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: int | None = Field(None, ge=0, description="Most tokens, prompt and completion; null: no limit.")
    max_cost: float | None = Field(
        None, ge=0, description="Most money, in US dollars of the price list; null: no limit."
    )
