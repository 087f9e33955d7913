"""Settings of model endpoints: address, request parameters, rate limits, prices and the budget.

Add an option of an endpoint here, with a default and a description. An option of one step (such as its token budget)
belongs to the section of that step. Keep out: keys. Only the name of the environment variable with the key is a
setting.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator

OPENAI_URL = "https://api.openai.com/v1"
DEFAULT_TOKENIZER = "o200k_base"
OWN_TOKENIZER = "model"
"""Value of `embedding_model.tokenizer`: the tokenizer of the model, by tiktoken's list of models."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Prefixes of keys, or a long mix of letters and digits as only keys have. A key with a hyphen is not a valid name.
_KEY = re.compile(r"(?:sk|pk|rk|gsk|hf|xai|nvapi)_\w*\d|AIza|(?:.*_)?(?=[A-Za-z]*\d)[A-Za-z0-9]{20}")


_SECRET = re.compile(r"auth|key|token|secret|passw|cookie|credential", re.IGNORECASE)
_HEADER = re.compile(r"[A-Za-z0-9_-]+")


def _check_address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("not an http(s) URL, such as http://localhost:11434/v1")
    return url


def _check_variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name) or _KEY.match(name):
        raise ValueError(
            "not the name of an environment variable; put the key into a variable, such as OPENAI_API_KEY, and set "
            "the name of the variable here (if you wrote a key here, remove it)"
        )
    return name


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    """Refuse a header that may hold a secret in plain text; the message does not show the value."""
    for name, value in headers.items():
        if not _HEADER.fullmatch(name):
            raise ValueError("not the name of a header, such as X-Team")
        if not value.isprintable():
            raise ValueError(f"the header {name} has a line break or a control character")
        is_plain = "$" not in value
        if is_plain and (_SECRET.search(name) or any(_KEY.match(word.replace("-", "_")) for word in value.split())):
            raise ValueError(
                f"the header {name} may hold a secret: put its value into an environment variable, such as "
                f"GATEWAY_KEY, and write {name}: $GATEWAY_KEY"
            )
    return headers


Address = Annotated[str, AfterValidator(_check_address)]
KeyVariable = Annotated[str, AfterValidator(_check_variable)]
ApiVersion = Annotated[
    str,  # YAML reads 2024-10-21 as a date
    BeforeValidator(lambda version: version.isoformat() if isinstance(version, date) else version),
]
Headers = Annotated[dict[str, str], AfterValidator(_check_headers)]


class FurtherEndpoint(BaseModel):
    """Another endpoint, or another key, of a model; what is null is as the model has it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: Address | None = None
    api_key_env: KeyVariable | None = None
    headers: Headers | None = None
    api_version: ApiVersion | None = None
    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    tokens_per_minute: Annotated[int, Field(ge=1)] | None = None


class _EndpointSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field("", description="Name of the model (Azure: of the deployment).")
    base_url: Address = Field(OPENAI_URL, description="URL of an OpenAI-compatible endpoint (Azure: of the resource).")
    api_key_env: KeyVariable = Field(
        "OPENAI_API_KEY", description="Environment variable that holds the key; local servers need none."
    )
    parameters: dict[str, Any] = Field(
        default_factory=dict, description="Additional parameters of each request, such as {temperature: 0}."
    )
    timeout_s: float = Field(
        180.0, gt=0, description="Seconds to wait for a complete reply before the request is sent again."
    )
    max_concurrency: int = Field(
        50,
        ge=1,
        le=1000,
        description="Maximum concurrent requests; starts at 4, grows while latency holds.",
    )
    requests_per_minute: int | None = Field(
        None, ge=1, description="Maximum requests per minute, over all processes of the root; null: no limit."
    )
    prompt_price: float | None = Field(
        None, ge=0, description="US dollars per million prompt tokens; null: from the price list."
    )

    headers: Headers = Field(
        default_factory=dict,
        description="Headers of each request, as gateways want them, such as {X-Key: $GATEWAY_KEY}; $NAME is that "
        "environment variable.",
    )
    endpoints: tuple[FurtherEndpoint, ...] = Field(
        (),
        description="Further endpoints or keys that share the calls, each {base_url, api_key_env, headers, "
        "api_version, requests_per_minute, tokens_per_minute}. What is left out is as above, headers only at the same "
        "base_url.",
    )

    @property
    def places(self) -> tuple[Self, ...]:
        """This model at each of its endpoints: settings with one endpoint, the first one first."""
        first = self.model_copy(update={"endpoints": ()})
        others = []
        for one in self.endpoints:
            changes = {name: value for name, value in one if value is not None and name in type(self).model_fields}
            if one.base_url not in (None, self.base_url):
                changes.setdefault("headers", {})  # they may hold the key of a gateway, which others must not get
            others.append(first.model_copy(update=changes))
        return (first, *others)

    @property
    def most_at_once(self) -> int:
        """Most concurrent requests, at all endpoints together."""
        return self.max_concurrency * len(self.places)


class _OpenAISettings(_EndpointSettings):
    api_version: ApiVersion | None = Field(None, description="Azure OpenAI only: API version, such as 2024-10-21.")
    max_attempts: int = Field(
        6,
        ge=1,
        description="Maximum attempts of a request before it counts as failed; besides, 20 that are answered with 429.",
    )
    tokens_per_minute: int | None = Field(
        None, ge=1, description="Maximum tokens per minute, over all processes of the root; null: no limit."
    )


LEAST_WINDOW = 512
REPLY_CAPS = ("max_completion_tokens", "max_tokens")
"""Parameters that cap a reply, the first before the others."""


class ChatModelSettings(_OpenAISettings):
    """A chat model behind an OpenAI-compatible endpoint."""

    completion_price: float | None = Field(
        None, ge=0, description="US dollars per million completion tokens; null: from the price list."
    )
    context_window: Annotated[int, Field(ge=LEAST_WINDOW)] | Literal["read"] | None = Field(
        None,
        description="Maximum tokens of a prompt and its reply together; prompts and replies are made to fit. read: ask "
        "the endpoint's list of models (llama.cpp, vLLM). null: learn it when the endpoint refuses a prompt.",
    )

    max_reply_tokens: int | None = Field(
        None,
        ge=16,
        description="Maximum tokens of one reply; a longer one is cut off, and what is whole of it is used. null: 300 "
        "to 4,000, by the section. A change asks for nothing again that is stored.",
    )

    @field_validator("context_window", mode="before")
    @classmethod
    def _is_window(cls, window: Any) -> Any:
        is_number = str(window).isdecimal() and int(window) >= LEAST_WINDOW
        if window is None or window == "read" or is_number:
            return window
        raise ValueError(f"not a number from {LEAST_WINDOW} on, `read` or null")

    @field_validator("parameters")
    @classmethod
    def _caps_are_numbers(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        for name in REPLY_CAPS:
            cap = parameters.get(name)
            if cap is not None and not (str(cap).isdecimal() and int(cap) > 0):
                raise ValueError(f"{name} is {cap!r}, not a number of tokens from 1 on")
        return parameters

    structured_output: Literal["auto", "json_schema", "json_object", "tool", "plain"] = Field(
        "auto",
        description="How JSON is asked for. auto: json_schema, json_object, tool, plain, the first that the endpoint "
        "does not refuse; it is remembered for later commands, until `doctor` tries all again.",
    )

    stop_loops: bool = Field(
        False,
        description="Read every reply as a stream, and stop one that repeats the same text for certain, as small "
        "models do. An endpoint that refuses streams gets whole requests. `init` sets it for Ollama, llama.cpp and "
        "other local servers.",
    )

    cache_name: str = Field(
        "",
        max_length=100,
        description="Name of the set of stored replies to use. Stored replies of a model serve at every address, so a "
        "server may move. If another model now has the same name, as on a local server, set or change this name: every "
        "stage of the model is then requested again.",
    )

    @property
    def reply_cap(self) -> int | None:
        """Most tokens of every reply that the parameters set; it replaces `max_reply_tokens`."""
        caps = [self.parameters.get(name) for name in REPLY_CAPS]
        return next((int(cap) for cap in caps if cap), None)

    def name_reply_cap(self, section: str) -> str:
        """Return the option that caps the replies to a section, as messages name it."""
        own = next((name for name in REPLY_CAPS if self.parameters.get(name)), None)
        return f"chat_model.parameters.{own}" if own else f"`max_reply_tokens` in {section}.model"


class EmbeddingModelSettings(_OpenAISettings):
    """An embedding model behind an OpenAI-compatible endpoint."""

    completion_price: ClassVar[None] = None

    max_concurrency: int = Field(
        16, ge=1, le=1000, description="Maximum concurrent requests; starts at 4, grows while latency holds."
    )
    dimensions: int | None = Field(
        None, ge=1, description="Vector length to request, if the model supports several; null: as the model replies."
    )
    batch_size: int = Field(128, ge=1, description="Maximum texts in one request.")
    batch_max_tokens: int = Field(
        8000,
        ge=16,
        description="Maximum tokens of one text; a longer text is split and its vectors are averaged (450 for a "
        "limit of 512).",
    )
    tokenizer: str = Field(
        DEFAULT_TOKENIZER,
        description="Counts the tokens for these limits: an encoding of tiktoken (o200k_base is bundled, others are "
        "downloaded), or model: the model's own, if tiktoken lists the model.",
    )
    token_margin: float = Field(
        0.0,
        ge=0,
        le=4,
        description="Share by which the model may count more tokens than the tokenizer: a text of more than "
        "batch_max_tokens / (1 + token_margin) tokens is split.",
    )
    refused_texts: Literal["fail", "halve"] = Field(
        "fail",
        description="A text within these limits that the endpoint refuses as too long: it fails and says so (fail), or "
        "is cut in two (halve); vectors then depend on the endpoint and belong to its base_url.",
    )
    batch_max_tokens_per_request: int = Field(100_000, ge=16, description="Maximum tokens in one request.")
    query_prefix: str = Field(
        "", description="Text in front of every question, if the model wants one, such as 'query: ' for E5."
    )
    passage_prefix: str = Field(
        "", description="Text in front of every text of the index, such as 'passage: ' for E5; embeds all texts again."
    )

    @field_validator("tokenizer")
    @classmethod
    def _is_known_tokenizer(cls, name: str) -> str:
        if name in (DEFAULT_TOKENIZER, OWN_TOKENIZER):
            return name
        import tiktoken

        if name not in tiktoken.list_encoding_names():
            known = ", ".join(tiktoken.list_encoding_names())
            raise ValueError(f"{name!r} is not a tokenizer; set {OWN_TOKENIZER!r} or one of {known}")
        return name


class RerankModelSettings(_EndpointSettings):
    """A reranking model behind a `/rerank` endpoint, for searches with `rerank: true`."""

    api_version: ClassVar[None] = None
    tokens_per_minute: ClassVar[None] = None
    completion_price: ClassVar[None] = None
    max_attempts: ClassVar[int] = 3
    """After them the order stays as it was."""

    base_url: Address = Field(
        "http://localhost:8080/v1", description="URL of the endpoint, such as https://api.cohere.com/v2."
    )
    api_key_env: KeyVariable = Field(
        "RERANK_API_KEY", description="Environment variable that holds the key; local servers need none."
    )
    path: str = Field(
        "/rerank",
        pattern=r"^/\S+$",
        description="Path below base_url: /rerank (Cohere, Jina, llama.cpp, vLLM), or one that ends in /score (vLLM).",
    )
    timeout_s: float = Field(
        30.0, gt=0, description="Seconds to wait for a complete reply before the request is sent again."
    )
    max_concurrency: int = Field(
        8, ge=1, le=1000, description="Maximum concurrent requests; starts at 4, grows while latency holds."
    )
    n_candidates: int = Field(50, ge=1, description="Text units of a question, best first, that are reranked.")
    batch_size: int = Field(100, ge=1, description="Maximum text units in one request.")


class BudgetSettings(BaseModel):
    """Limit on what all runs of a root together may spend on models."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: int | None = Field(None, ge=0, description="Maximum tokens of prompts and completions; null: no limit.")
    max_cost: float | None = Field(
        None, ge=0, description="Maximum cost in US dollars, by the price list; null: no limit."
    )
    check_estimate: bool = Field(
        True,
        description="Whether an index run stops before its first call if its estimate is above what is left; false: it "
        "runs until a limit is reached.",
    )
