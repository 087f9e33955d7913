"""Windows of chat models: the most tokens of a prompt and its reply together, and what they leave for each.

A window is set (`context_window`), read from the endpoint's list of models (`context_window: read`), or learnt from the
refusal of a prompt. A learnt window holds for the process. Tokens are counted with the package's own tokenizer, so a
model may count up to `MARGIN` times as many. A prompt depends on its window as if the window had always been known: the
tokens by which it must be shorter follow from the window, the cap of the reply and the prompt alone. Only if the model
counted more than `MARGIN`, they follow from its count.

Keep out: how a prompt is made shorter, which the code that builds it knows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_pipeline.models.endpoints.replies import TokenUsage
from graphrag_pipeline.models.ports import Message
from graphrag_pipeline.settings.settings import REPLY_SHARE
from graphrag_pipeline.text.tokens import count_tokens_each

MARGIN = 1.15
"""How many tokens a model may count for one of ours; Qwen, Llama and Mistral count 1.0 to 1.1 on English."""
LEAST_REPLY = 32
"""Tokens that are left for a reply in any case."""
READ = "read"
WINDOW_END = 8
"""Tokens before the end of a window at which servers may stop a reply."""
TURN_TOKENS = 6
"""Tokens of a turn besides its text: its role and its marks."""

WINDOW_KEYS = ("n_ctx", "max_model_len", "context_length", "max_context_length", "context_window", "n_ctx_train")
"""Keys with a model's window in lists of models and refusals; what is served comes before what was trained for."""

_WINDOWS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"context (?:size|length|window)(?: is| of)?(?: only)? \(?(\d+)",
        r"model(?:'s)? (?:maximum )?(?:context )?length (?:is|of) (\d+)",
        r"(?:tokens )?> (\d+) maximum",
        r"(?:must (?:have|be) (?:less than|<=?)|at most|maximum (?:of|is)|limit (?:of|is)) (\d+)",
    )
)
_PROMPTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\((\d+) in (?:the|your) (?:messages|prompt)",
        r"(?:request|prompt|input) \(?(?:of |length |is too long: )?(\d+)(?: tokens)?",
        r"requested (?:tokens \()?(\d+)",
        r"(\d+) (?:input |prompt )?tokens (?:>|from)",
        r"Given: (\d+)",
    )
)


@dataclass(frozen=True)
class PromptSize:
    """The tokens of a prompt as this package counts them, and the cap of its reply; None means no cap."""

    n_tokens: int
    cap: int | None

    def excess(self, window: int, n_counted: int | None = None) -> int:
        """Return the tokens by which the prompt must be shorter to leave room for a reply.

        Args:
            n_counted: tokens that the model counted, if it names them.
        """
        return max(1, self.n_tokens - prompt_room(window, self.cap, self._ratio(n_counted)))

    def _ratio(self, n_counted: int | None) -> float:
        return max(MARGIN, 1.03 * n_counted / self.n_tokens if n_counted else 0.0)


def prompt_room(window: int, cap: int | None, ratio: float = MARGIN) -> int:
    """Return the most tokens of a prompt, as this package counts, beside a reply of at most `cap` tokens."""
    reply = window // REPLY_SHARE if cap is None else min(cap, window // REPLY_SHARE)
    return max(1, int((window - reply) / ratio))


def usual_cap(window: int | None, cap: int) -> int:
    """Return the most tokens of a reply in a window whose prompt is as long as it may be."""
    return cap if window is None else min(cap, max(LEAST_REPLY, window // REPLY_SHARE))


def least_reply(window: int, cap: int | None) -> int:
    """Return the fewest tokens that are left for a reply: half of its usual cap. A prompt that leaves less is refused.

    It is the same for a window that was set and one that was learnt, so that prompts are the same, too.
    """
    return usual_cap(window, cap or window) // 2


def count_prompt(messages: Sequence[Message]) -> int:
    """Return the tokens of a conversation as this package counts."""
    return sum(count_tokens_each([turn["content"] for turn in messages])) + TURN_TOKENS * len(messages)


class ModelWindow:
    """The window of one model.

    Args:
        configured: tokens, `read`, or None if it is not known.
    """

    def __init__(self, configured: int | str | None) -> None:
        self.tokens = configured if isinstance(configured, int) else None
        self.is_to_read = configured == READ
        self._ratio = MARGIN

    def set_read(self, tokens: int | None) -> None:
        """Set the window from the list of models of the endpoint."""
        self.is_to_read = False
        self.tokens = tokens

    def learn(self, tokens: int) -> bool:
        """Note the window of a refusal; return whether it is new."""
        if self.tokens is not None and self.tokens <= tokens:
            return False
        self.tokens = tokens
        return True

    def note_count(self, n_tokens: int, n_counted: int | None) -> None:
        """Note how many tokens the model counted for some of ours; only caps follow it, never prompts."""
        if n_tokens and n_counted:
            self._ratio = max(self._ratio, n_counted / n_tokens)

    def fit_cap(self, size: PromptSize) -> int | None:
        """Return the most tokens of a reply that the window leaves, but at least `least_reply`.

        If the model counts so many tokens that less is left, the endpoint refuses the prompt, or the window ends the
        reply (`has_cut`). Either way the tokens by which it is too long follow from the count of this prompt.
        """
        if self.tokens is None:
            return size.cap
        left = max(least_reply(self.tokens, size.cap), int(self.tokens - self._ratio * size.n_tokens))
        return left if size.cap is None else min(size.cap, left)

    def has_cut(self, size: PromptSize, usage: TokenUsage) -> bool:
        """Whether the end of the window, and no cap, cut a reply to less than `least_reply`."""
        if self.tokens is None or not 0 < usage.completion_tokens < least_reply(self.tokens, size.cap):
            return False
        return usage.tokens >= self.tokens - WINDOW_END

    def refuses(self, size: PromptSize) -> bool:
        """Whether a prompt leaves less than half of the room for its reply."""
        if self.tokens is None:
            return False
        return self.tokens - MARGIN * size.n_tokens < least_reply(self.tokens, size.cap)


def read_refusal(fields: Mapping[str, Any], message: str) -> tuple[int | None, int | None]:
    """Return the window and the tokens of the prompt that a refusal names; None for what it does not name."""
    window = next((_positive(fields.get(key)) for key in WINDOW_KEYS if _positive(fields.get(key))), None)
    counted = _positive(fields.get("n_prompt_tokens"))
    return window or _search(_WINDOWS, message), counted or _search(_PROMPTS, message)


def read_model_windows(body: object) -> dict[str, int | None]:
    """Return the windows of the models that an endpoint lists, by name; None where the list has none."""
    data = body.get("data") if isinstance(body, Mapping) else None
    entries = [entry for entry in data if isinstance(entry, Mapping)] if isinstance(data, list) else []
    return {str(entry["id"]): _window_of(entry) for entry in entries if entry.get("id")}


def choose_listed(name: str, listed: Collection[str]) -> str | None:
    """Return which of the names that an endpoint lists means a model; None if that is open.

    It is the name itself, else the name with the tag `:latest`, as Ollama lists it, else the only one that is listed: a
    llama.cpp server takes any name and lists the path of its file.
    """
    found = next((one for one in (name, f"{name}:latest") if one in listed), None)
    return next(iter(listed)) if found is None and len(listed) == 1 else found


def _window_of(entry: Mapping[str, Any]) -> int | None:
    """Return the window of one entry in a list of models; None without one."""
    meta = entry.get("meta")
    places = (entry, meta if isinstance(meta, Mapping) else {})
    found = (_positive(place.get(key)) for key in WINDOW_KEYS for place in places)
    return next((window for window in found if window), None)


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _search(patterns: Sequence[re.Pattern[str]], message: str) -> int | None:
    found = (pattern.search(message) for pattern in patterns)
    return next((int(match[1]) for match in found if match and int(match[1]) > 0), None)
