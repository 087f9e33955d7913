"""What a model's tokens cost, from the price list of `genai-prices` (Pydantic's, MIT, shipped as data, no download).

A model is looked up at the provider behind the endpoint's address; behind an unknown address (a proxy, a test server)
by its name alone. Prices in settings come first: 0 for a model of one's own. An unknown model has no cost, said once.
"""

from __future__ import annotations

import functools
import logging
from dataclasses import dataclass
from urllib.parse import urlsplit

_LOG = logging.getLogger(__name__)
_MILLION = 1_000_000


@dataclass(frozen=True)
class Price:
    """The price of one model, as set (US dollars for a million tokens) or as listed under a provider."""

    model: str
    prompt: float = 0.0
    completion: float = 0.0
    provider: str | None = None

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """US dollars for one call."""
        if self.provider is None:
            return (prompt_tokens * self.prompt + completion_tokens * self.completion) / _MILLION
        listed = _listed_price(self.model, prompt_tokens, completion_tokens, self.provider)
        return listed[1] if listed else 0.0


@functools.cache
def find_price(model: str, base_url: str, prompt: float | None = None, completion: float | None = None) -> Price | None:
    """The price of a model behind an endpoint; None, with one warning in the log, if nobody knows it.

    Args:
        prompt, completion: US dollars for a million tokens, as set by a user; one alone leaves the other free.
    """
    if prompt is not None or completion is not None:
        return Price(model, prompt or 0.0, completion or 0.0)
    for provider, url in ((None, base_url), (None, None), ("openai", None)):
        listed = _listed_price(model, 1, 0, provider, url)
        if listed:
            return Price(model, provider=listed[0])
    _LOG.warning(
        "no price known for model %r at %s: its cost is not counted; set prompt_price and completion_price (0 if free)",
        model,
        urlsplit(base_url).hostname,
    )
    return None


def _listed_price(
    model: str, prompt_tokens: int, completion_tokens: int, provider: str | None, url: str | None = None
) -> tuple[str, float] | None:
    """The provider and the cost of a call by the price list; by name alone where neither provider nor URL is given."""
    from genai_prices import Usage, calc_price

    usage = Usage(input_tokens=prompt_tokens, output_tokens=completion_tokens)
    try:
        price = (
            calc_price(usage, model, provider_api_url=url) if url else calc_price(usage, model, provider_id=provider)
        )
    except LookupError:
        return None
    return price.provider.id, float(price.total_price)
