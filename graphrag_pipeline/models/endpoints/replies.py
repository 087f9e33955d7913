"""Chat completions and vectors in response bodies, and corrective requests for completions that cannot be used.

Token usage of calls: the estimate before a call and the report after it.

Keep out: sending, storage, and the meaning of a reply, which the `parse` of its request knows.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.endpoints.thoughts import ThoughtFilter
from graphrag_pipeline.models.ports import CUT_OFF, Message, PaidReplyError, ReplyFormatError, sendable

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


MAX_SHOWN = 4000  # characters of a bad reply in a corrective request
MAX_ASKED = 4
"""Most requests for one reply in all runs, each worded differently: the request and its corrections."""
_STRICTER = (
    "Use at most half as many words, and only what you are sure of.",
    "Write the shortest answer that has the format asked for.",
    "Write the shortest answer that has the format asked for.",
)

_CALLED = ("tool_calls", "function_call")
_FILTERED = re.compile(
    r"content.?filter|safety|prohibited|block.?list|blocked|recitation|sensitive|spii|moderation|guardrail",
    re.IGNORECASE,
)
"""Reasons to finish by which endpoints say that a filter stopped the reply."""
_TEXT_PARTS = ("text", "output_text")
_THOUGHT_FIELDS = ("reasoning_content", "reasoning")


@dataclass(frozen=True)
class Completion:
    """The text of one chat completion and how it ended.

    Attributes:
        is_in_thoughts: whether the endpoint sent text as thoughts and none as the reply.
        begins_unmarked: whether thoughts without an opening mark came before the text (`thoughts.py`).
    """

    text: str
    finish_reason: str
    refusal: str = ""
    is_in_thoughts: bool = False
    begins_unmarked: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether the text reached the most tokens of a reply."""
        return self.finish_reason == CUT_OFF

    @property
    def is_refused(self) -> bool:
        """Whether the model, or a filter of its endpoint, declines to answer."""
        return bool(self.refusal) or _FILTERED.search(self.finish_reason) is not None


def read_completion(body: object) -> Completion:
    """Return the first choice of a chat completion, without the thoughts before it.

    The arguments of a called tool are the text.

    Raises:
        ReplyFormatError: the body is not a chat completion.
    """
    choice = _first_choice(body)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise ReplyFormatError(f"the endpoint sent no message: {str(body)[:120]!r}")
    said = sendable(_arguments_of(message.get("tool_calls")) or text_of(message.get("content")))
    finish_reason = str(choice.get("finish_reason") or "stop")
    finish_reason = "stop" if finish_reason in _CALLED else finish_reason
    thoughts = ThoughtFilter()
    text = thoughts.add(said) + thoughts.rest()
    if thoughts.has_thoughts and not text.strip() and finish_reason == "stop":
        finish_reason = CUT_OFF  # the model ended before it wrote its reply
    refusal = message.get("refusal")
    is_in_thoughts = not said.strip() and bool(thoughts_of(message).strip())
    refused = sendable(refusal) if isinstance(refusal, str) else ""
    return Completion(text, finish_reason, refused, is_in_thoughts, thoughts.is_unmarked)


def find_fault(answer: Completion, cap_option: str) -> str:
    """Return why a completion cannot be used by any request; empty if it can. `cap_option` caps its tokens."""
    if answer.is_refused:
        reason = "content filter" if answer.finish_reason == "content_filter" else answer.finish_reason
        return f"the model refused: {answer.refusal[:200] or reason}"
    if answer.is_in_thoughts and not answer.is_cut:
        return (
            "the reply is empty: the endpoint sent all text as thoughts (`reasoning_content`). Turn off thoughts, or "
            "the reasoning parser of the server"
        )
    if not answer.text.strip():
        cut = f": all its tokens were used before its first word, as by thoughts; raise {cap_option}"
        return "the reply is empty" + (cut if answer.is_cut else "")
    return ""


def correct_messages(
    messages: Sequence[Message], answer: Completion, reason: str, n_asked: int = 1
) -> list[Message] | None:
    """Return the conversation of a corrective request; None after a refusal, which would be paid in vain.

    Args:
        n_asked: number of requests before; each wording is another, since an equal request at temperature 0 would get
            an equal answer.
    """
    if answer.is_refused:
        return None
    again = f" {n_asked} answers so far could not be used. {_STRICTER[min(n_asked, MAX_ASKED) - 2]}" * (n_asked > 1)
    if answer.is_cut:
        return add_to_last(messages, f"Your previous answer was too long and was cut off. Answer more briefly.{again}")
    if not answer.text.strip():
        return add_to_last(messages, f"Your previous answer was empty. Write the answer.{again}")
    correction = (
        f"Your answer cannot be used: {reason[:500]}\n"
        f"Answer again, in the format asked for and with nothing else.{again}"
    )
    return [
        *messages,
        {"role": "assistant", "content": answer.text[:MAX_SHOWN]},
        {"role": "user", "content": correction},
    ]


def correction_key(key: str, n_asked: int) -> str:
    """Return the key under which a rejected reply is stored: that of its request, or of its n-th correction."""
    return stable_hash("correction", key, str(n_asked)) if n_asked else key


def add_to_last(messages: Sequence[Message], text: str) -> list[Message]:
    """Add a paragraph to the last turn of a conversation; some models require alternating turns."""
    last = messages[-1]
    return [*messages[:-1], {"role": last["role"], "content": f"{last['content']}\n\n{text}"}]


def read_vectors(body: object, n: int) -> list[np.ndarray]:
    """Return the n vectors of an embeddings response, each float32 (d,), in the order of the inputs.

    Some endpoints number all vectors alike, or none. The order of the reply is then that of the inputs.

    Raises:
        ReplyFormatError: the body does not hold n vectors of finite numbers in a known order; a `PaidReplyError` if it
            holds vectors, so that the same texts in fewer at a time may get theirs.
    """
    rows = body.get("data") if isinstance(body, Mapping) else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, Mapping) for row in rows):
        raise ReplyFormatError(f"the endpoint did not send {n} vectors: {str(body)[:120]!r}")
    if len(rows) != n:
        raise PaidReplyError(f"the endpoint sent {len(rows)} vectors for {n} texts")
    indices = [row.get("index") for row in rows]
    places = list(range(n)) if indices.count(indices[0]) == n else indices
    if sorted(places, key=str) != sorted(range(n), key=str):
        raise PaidReplyError(f"the endpoint did not number its {n} vectors: {indices[:8]}")
    vectors = {place: _read_vector(row.get("embedding")) for place, row in zip(places, rows, strict=True)}
    return [vectors[place] for place in range(n)]


def _read_vector(value: object) -> np.ndarray:
    try:
        if isinstance(value, str):
            vector = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
        else:
            with np.errstate(over="ignore"):  # infinity is checked below
                vector = np.asarray(value, dtype=np.float32)
    except (ValueError, TypeError, OverflowError):
        raise PaidReplyError(f"not a vector: {str(value)[:80]!r}") from None
    if vector.ndim != 1 or not vector.size or not np.isfinite(vector).all():
        raise PaidReplyError(f"not a vector of finite numbers: {str(value)[:80]!r}")
    if not vector.any():
        raise PaidReplyError(f"a vector of {vector.size} zeros")
    return vector


def _first_choice(body: object) -> Mapping[str, Any]:
    choices = body.get("choices") if isinstance(body, Mapping) else None
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        return choices[0]
    raise ReplyFormatError(f"the endpoint sent no chat completion: {str(body)[:120]!r}")


def _arguments_of(calls: object) -> str:
    """Return the arguments of the first called tool, as JSON text; empty without a call."""
    first = calls[0] if isinstance(calls, list) and calls else None
    function = first.get("function") if isinstance(first, Mapping) else None
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    return arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""


def text_of(content: object) -> str:
    """Return the text of a content, which may be a list of parts; parts that hold thoughts are left out."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, Mapping) and part.get("type", "text") in _TEXT_PARTS]
        return "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""


def thoughts_of(message: Mapping[str, Any]) -> str:
    """Return the text that a message holds apart from its content, as thoughts."""
    return next((value for name in _THOUGHT_FIELDS if isinstance(value := message.get(name), str) and value), "")
