"""Token prices of models, from the price list of the package `genai-prices` (data in the package, no download).

A model is looked up at the provider that the endpoint's address belongs to. At an unknown address (a proxy, a test
server) it is looked up by name alone. Prices in the settings come first, such as 0 for a local model. The cost of an
unknown model is not counted; the log warns once.
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
    """Price of one model: from the settings (US dollars per million tokens), or from the list under a provider."""

    model: str
    prompt: float = 0.0
    completion: float = 0.0
    provider: str | None = None

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the US dollars of one call."""
        if self.provider is None:
            return (prompt_tokens * self.prompt + completion_tokens * self.completion) / _MILLION
        listed = _listed_price(self.model, prompt_tokens, completion_tokens, self.provider)
        return listed[1] if listed else 0.0


@functools.cache
def find_price(model: str, base_url: str, prompt: float | None = None, completion: float | None = None) -> Price | None:
    """Return the price of a model at an endpoint, or None, with one warning in the log, if it is not known.

    Args:
        prompt, completion: US dollars per million tokens from the settings; if only one is set, the other is 0.
    """
    if prompt is not None or completion is not None:
        return Price(model, prompt or 0.0, completion or 0.0)
    for provider, url in ((None, base_url), (None, None), ("openai", None)):
        listed = _listed_price(model, 1, 0, provider, url)
        if listed:
            return Price(model, provider=listed[0])
    _LOG.warning(
        "model %r at %s has no known price: its cost is not counted; set prompt_price and completion_price (0 if free)",
        model,
        urlsplit(base_url).hostname,
    )
    return None


def _listed_price(
    model: str, prompt_tokens: int, completion_tokens: int, provider: str | None, url: str | None = None
) -> tuple[str, float] | None:
    """Return provider and cost of a call by the price list; by name alone without provider and URL."""
    from genai_prices import Usage, calc_price

    usage = Usage(input_tokens=prompt_tokens, output_tokens=completion_tokens)
    try:
        price = (
            calc_price(usage, model, provider_api_url=url) if url else calc_price(usage, model, provider_id=provider)
        )
    except LookupError:
        return None
    return price.provider.id, float(price.total_price)
