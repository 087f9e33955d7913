"""Token usage of calls: the estimate before a call and the report after it.

Keep out: prices, budgets, and statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphrag_pipeline.models.requests import sendable

MAX_REPORTED = 1_000_000_000  # tokens; a larger report of an endpoint is ignored


@dataclass(frozen=True)
class TokenUsage:
    """Tokens of one call, expected or reported."""

    prompt_tokens: int
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


def estimate_tokens(text: str) -> int:
    """Return an upper estimate without a tokenizer: 3 bytes of UTF-8 per token (English has 4.5, Chinese 4)."""
    return len(sendable(text).encode()) // 3 + 1


def read_usage(body: object, expected: TokenUsage) -> TokenUsage:
    """Return the usage that a response body reports.

    A count that is missing or invalid is replaced: prompt tokens by the expected number, completion tokens by an
    estimate from the choices.
    """
    reported = body.get("usage") if isinstance(body, Mapping) else None
    usage = reported if isinstance(reported, Mapping) else {}
    prompt, completion = (_read_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    if completion is None:
        choices = body.get("choices") if isinstance(body, Mapping) else None
        completion = estimate_tokens(str(choices)) if choices else 0
    return TokenUsage(expected.prompt_tokens if prompt is None else prompt, completion)


def read_reasoning(body: object) -> int:
    """Return the tokens of thoughts that a response body reports, of its completion tokens; 0 without a report."""
    usage: Any = body.get("usage") if isinstance(body, Mapping) else None
    details = usage.get("completion_tokens_details") if isinstance(usage, Mapping) else None
    return _read_count(details.get("reasoning_tokens")) or 0 if isinstance(details, Mapping) else 0


def _read_count(value: object) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value < MAX_REPORTED else None  # type: ignore[operator, return-value]
