"""Records of requests and their outcome: scripts see them before the reply, tests after it."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from graphrag_pipeline.demo_model.prompts import PromptMessages

_SECRET_HEADERS = ("authorization", "api-key")
HIDDEN = "***"


@dataclass(frozen=True)
class ReceivedRequest:
    """One request for a completion or for embeddings, as a script sees it.

    `kind` is that of a prompt (`replies.py`), `embedding` or `rerank`; `key` is the hash of endpoint, model and body,
    so a retry has the same; `attempt` counts from 1 the requests with this key.
    """

    kind: str
    path: str
    model: str
    body: dict[str, Any]
    key: str
    attempt: int
    headers: dict[str, str]
    conversation: PromptMessages
    inputs: tuple[str | Sequence[int], ...] = ()

    @cached_property
    def prompt(self) -> str:
        """All text of all messages, or of all inputs."""
        texts = [text for _, text in self.conversation.messages] or [str(item) for item in self.inputs]
        return "\n\n".join(texts)


@dataclass(slots=True)
class Call:
    """One recorded request. `status` is None until a complete answer was sent.

    Attributes:
        n_inputs: texts to embed.
        is_batched: whether it came in a batch.
    """

    kind: str
    path: str
    model: str
    key: str
    attempt: int
    headers: dict[str, str]
    body: dict[str, Any] | None = None
    fault: str | None = None
    n_inputs: int = 0
    status: int | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    is_batched: bool = False

    @property
    def is_clean(self) -> bool:
        """Whether the client got a complete reply without a fault."""
        return self.status == 200 and self.fault is None


@dataclass(slots=True)
class Log:
    """All calls since the server started or was reset, in order of arrival."""

    calls: list[Call] = field(default_factory=list)
    attempts: collections.Counter[str] = field(default_factory=collections.Counter)
    n_in_flight: int = 0
    most_in_flight: int = 0

    def next_attempt(self, key: str) -> int:
        """1 for the first request with this key, then 2, ..."""
        self.attempts[key] += 1
        return self.attempts[key]

    def count(self, kind: str | None = None) -> int:
        """Number of calls of a kind, or of all."""
        return sum(kind is None or call.kind == kind for call in self.calls)

    def repeated_keys(self) -> list[str]:
        """Keys of requests that were answered cleanly more than once, that is, paid for twice."""
        counts = collections.Counter(call.key for call in self.calls if call.is_clean)
        return sorted(key for key, n in counts.items() if n > 1)

    def summary(self) -> dict[str, Any]:
        """Counts by kind, status and fault, tokens of answered calls, repeats, abandoned calls: GET /stats."""
        answered = [call for call in self.calls if call.status == 200]
        return {
            "n_calls": len(self.calls),
            "kinds": _counts(call.kind for call in self.calls),
            "statuses": _counts(str(call.status) for call in self.calls),
            "faults": _counts(call.fault for call in self.calls if call.fault),
            "prompt_tokens": sum(call.prompt_tokens for call in answered),
            "completion_tokens": sum(call.completion_tokens for call in answered),
            "n_batched": sum(call.is_batched for call in self.calls),
            "n_inputs": sum(call.n_inputs for call in answered),
            "n_repeated": len(self.repeated_keys()),
            "n_abandoned": sum(call.status is None and call.fault is None for call in self.calls),
            "most_in_flight": self.most_in_flight,
        }


def hide_keys(headers: dict[str, str]) -> dict[str, str]:
    """The headers with the values of those that carry a key replaced by `***`."""
    return {name: HIDDEN if name in _SECRET_HEADERS else value for name, value in headers.items()}


def _counts(values: Any) -> dict[str, int]:
    return dict(sorted(collections.Counter(values).items()))
