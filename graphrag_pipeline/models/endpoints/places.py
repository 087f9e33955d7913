"""The endpoints of one model: where a call goes, and what each endpoint takes.

A call goes to the endpoint that is least busy for its limit of concurrent requests, among those whose rate limit lets
it begin first. An endpoint that fails rests, for longer each time; one that refuses its key or wants to be paid rests
for `REFUSED_REST_S`. Calls avoid an endpoint that rests while another one does not. With a single endpoint there is
nothing to choose, so rests change nothing.

Parameters of the requests to one endpoint are adapted to what it accepts: an endpoint that rejects a parameter names it
in its error, and the parameter is then left out of all further requests to it.

The key and the headers are read from the environment at the first request.

Keep out: retries and messages (`endpoint.py`).
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.models.endpoints.limits import AdaptiveLimit
from graphrag_pipeline.models.endpoints.problems import NO_KEY, Problem
from graphrag_pipeline.models.event_loop import http_client
from graphrag_pipeline.models.spending import Price, Rate, find_price
from graphrag_pipeline.settings.models import ChatModelSettings, EmbeddingModelSettings, RerankModelSettings

if TYPE_CHECKING:
    import openai

_LOG = logging.getLogger(__name__)
ModelSettings = ChatModelSettings | EmbeddingModelSettings | RerankModelSettings
CAPS = ("max_tokens", "max_completion_tokens")
"""Names of the parameter with the most tokens of a reply: the usual one, and that of OpenAI's newer models."""
FIRST_REST_S, MAX_REST_S = 1.0, 60.0
"""Seconds that an endpoint rests after its first failure, and after many in a row; the rest doubles each time."""
REFUSED_REST_S = 300.0
"""Seconds that an endpoint rests which takes no request at all: its key, its credit or the model is to be set right."""


class ModelParameters:
    """The parameters that each request to a model carries.

    Args:
        model_name: model and host, for the log.
        parameters: name -> value at the start.
        defaults: names that are not in the settings. Until a request is answered, they are left out after any refusal
            that names no cause.

    Attributes:
        current: name -> value of the parameters in use.
        cap_name: parameter with the most tokens of a reply.
    """

    def __init__(self, model_name: str, parameters: Mapping[str, Any], defaults: Collection[str] = ()) -> None:
        self._may_be_refused = set(defaults)
        self.current = dict(parameters)
        self.cap_name = CAPS[1] if CAPS[1] in parameters else CAPS[0]
        self._model_name = model_name
        self._left_out: set[str] = set()

    def with_cap(self, cap: int | None) -> dict[str, Any]:
        """Return the parameters of a request whose reply has at most `cap` tokens, if the model accepts a cap."""
        if cap is None or self.cap_name in self._left_out:
            return dict(self.current)
        return {**self.current, self.cap_name: cap}

    def note_answer(self) -> None:
        """Note that the model takes these parameters."""
        self._may_be_refused.clear()

    def adapt(self, problem: Problem) -> bool:
        """Leave out the parameter that a problem names as unsupported, with one warning in the log.

        Returns:
            Whether the request may succeed now: a parameter was left out, by this call or after the request was sent.
        """
        name = problem.find_refused({*self.current, self.cap_name, *self._left_out})
        if not name and self._may_be_refused & self.current.keys() and problem.is_of_unknown_cause:
            name = min(self._may_be_refused & self.current.keys())
        if not name or name in self._left_out:
            return bool(name)
        value = self.current.pop(name, None)
        self._left_out.add(name)
        if name == CAPS[0] and CAPS[1] in problem.message:
            self.cap_name = CAPS[1]
            self.current |= {} if value is None else {CAPS[1]: value}
        _LOG.warning(
            "%s does not accept the parameter %r; requests go without it from now on (%s)",
            self._model_name,
            name,
            problem.message,
        )
        return True


class ModelPlace:
    """One endpoint of a model: an address with a key.

    Args:
        settings: with this endpoint alone.
        label: the host; if several endpoints share it, also port or variable of the key.
        parameters: of each request; see `ModelParameters`.

    Attributes:
        has_answered: whether it gave any answer.
        rests_until: loop time until which calls avoid it.
    """

    def __init__(
        self,
        settings: ModelSettings,
        label: str,
        limit: AdaptiveLimit,
        parameters: Mapping[str, Any],
        defaults: Collection[str] = (),
    ) -> None:
        self.settings, self.label, self.limit = settings, label, limit
        self.parameters = ModelParameters(f"{settings.model} at {label}", parameters, defaults)
        self.rate = Rate(f"{label} {settings.model}", settings.requests_per_minute, settings.tokens_per_minute)
        self.has_answered = False
        self.rests_until = -math.inf
        self._n_failed = 0  # in a row
        self._failed_at = -math.inf
        self._client: openai.AsyncOpenAI | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def connect(self) -> openai.AsyncOpenAI:
        """Return the SDK client of the running event loop.

        Raises:
            SettingsError: the key or a header is missing.
        """
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client, self._loop = make_client(self.settings, urlsplit(self.settings.base_url).hostname or ""), loop
        return self._client

    @property
    def price(self) -> Price | None:
        known = self.settings
        return find_price(known.model, known.base_url, known.prompt_price, known.completion_price)

    @property
    def is_resting(self) -> bool:
        return self.rests_until > asyncio.get_running_loop().time()

    def rest(self, seconds: float) -> None:
        """Let calls avoid this endpoint for a while."""
        self.rests_until = max(self.rests_until, asyncio.get_running_loop().time() + seconds)

    def note_answer(self, started_at: float) -> None:
        """Note that a request which started at a loop time was answered."""
        self.has_answered = True
        self.parameters.note_answer()
        if started_at > self._failed_at:
            self._n_failed = 0

    def note_failure(self, problem: Problem, started_at: float) -> None:
        """Rest after an attempt that failed; attempts under way together count once."""
        self.has_answered = self.has_answered or problem.status is not None
        if started_at > self._failed_at:
            self._failed_at = asyncio.get_running_loop().time()
            self._n_failed += 1
        self.rest(max(problem.retry_after_s or 0.0, min(MAX_REST_S, FIRST_REST_S * 2 ** (self._n_failed - 1))))


def open_places(
    settings: ModelSettings,
    parameters: Mapping[str, Any],
    defaults: Collection[str],
    limit_of: Callable[[ModelSettings], AdaptiveLimit],
) -> list[ModelPlace]:
    """Return the endpoints of a model, in the order of the settings."""
    places: Sequence[ModelSettings] = settings.places
    labelled = zip(places, label_places(settings), strict=True)
    return [ModelPlace(one, label, limit_of(one), parameters, defaults) for one, label in labelled]


def label_places(settings: ModelSettings) -> list[str]:
    """Return a name for each endpoint of a model: its host, with what else is needed to tell it from the others."""
    addresses = [urlsplit(one.base_url) for one in settings.places]
    hosts = [address.hostname or one.base_url for address, one in zip(addresses, settings.places, strict=True)]
    if len(set(hosts)) < len(hosts):
        hosts = [address.netloc.rpartition("@")[2] for address in addresses]
    if len(set(hosts)) < len(hosts):
        hosts = [f"{host} ({one.api_key_env})" for host, one in zip(hosts, settings.places, strict=True)]
    return hosts


def sort_places(places: Sequence[ModelPlace]) -> list[ModelPlace]:
    """Return those that do not rest, the least busy first; if all rest, the one that rests for the shortest time."""
    awake = sorted((place for place in places if not place.is_resting), key=lambda place: place.limit.load)
    return awake or [min(places, key=lambda place: place.rests_until)]


# ----------------------------------------------------------------------------------------------------------- SDK client

_NAMED_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")
_NEEDS_KEY = ("api.openai.com", ".openai.azure.com")


def make_client(settings: ModelSettings, host: str) -> openai.AsyncOpenAI:
    """Open the SDK client of one endpoint, without the retries of the SDK (`endpoint.py` retries).

    Raises:
        SettingsError: the endpoint needs a key and the variable is empty, or its value cannot be a key; or the same of
            the variable of a header.
    """
    import openai

    key = _read_key(settings.api_key_env, host)
    shared: Any = {
        "timeout": settings.timeout_s,
        "max_retries": 0,
        "http_client": http_client(),
        "default_headers": {name: _fill_in(name, value) for name, value in settings.headers.items()},
    }
    if settings.api_version:
        return openai.AsyncAzureOpenAI(
            azure_endpoint=settings.base_url,
            api_version=settings.api_version,
            api_key=key,
            **shared,
        )
    return openai.AsyncOpenAI(base_url=settings.base_url, api_key=key, **shared)


def find_unset(settings: ModelSettings) -> list[str]:
    """Return the environment variables that a model needs and that are not set: of keys, and in headers."""
    named = [
        variable
        for place in settings.places
        for variable in (
            *([place.api_key_env] if (urlsplit(place.base_url).hostname or "").endswith(_NEEDS_KEY) else ()),
            *(name for value in place.headers.values() for name in _NAMED_VARIABLE.findall(value)),
        )
    ]
    return [variable for variable in dict.fromkeys(named) if not os.environ.get(variable, "").strip()]


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


def _fill_in(header: str, value: str) -> str:
    """Return the value of a header with the values of the environment variables that it names."""

    def read(found: re.Match[str]) -> str:
        filled = os.environ.get(found[1], "").strip()
        if not filled:
            raise SettingsError(f"the header {header}: set the environment variable {found[1]}, which it names")
        if not (filled.isascii() and filled.isprintable()):
            raise SettingsError(f"the environment variable {found[1]} holds characters that a header cannot have")
        return filled

    return _NAMED_VARIABLE.sub(read, value)
