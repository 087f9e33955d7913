"""Replies judged by the `parse` of their request, sent or stored, rejected or not.

Keep out: sending, and the wording of corrective requests (`replies.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from graphrag_pipeline.models.cache import ResponseCache, StoredReply
from graphrag_pipeline.models.endpoints.replies import MAX_ASKED, Completion, correction_key, find_fault
from graphrag_pipeline.models.ports import NOT_ASKED_AGAIN, ChatReply, ChatRequest, ReplyFormatError
from graphrag_pipeline.models.reply_json import keep_whole_values
from graphrag_pipeline.text.cut_texts import is_loop

T = TypeVar("T")

_CUT = "the reply was cut off (finish_reason length)"
_LOOP = (
    f"{_CUT} while it repeated itself, which a larger cap does not help: set frequency_penalty in parameters of the "
)
_LOOP += "model, or use a larger model"


@dataclass(frozen=True)
class ReplyFault:
    reason: str


def judge(request: ChatRequest[T], answer: Completion, cap_option: str) -> T | ReplyFault:
    """Return the parsed value of a completion, or why it cannot be used; of one that was cut off, of what is whole.

    Args:
        cap_option: the option that caps the reply, such as `answers.max_map_tokens`.
    """
    fault = find_fault(answer, cap_option)
    if fault:
        return ReplyFault(fault)
    keep_whole: Callable[[str], str] | None = str
    if answer.is_cut:
        keep_whole = request.keep_whole or (keep_whole_values if request.response_format else None)
    if keep_whole is None:
        return ReplyFault(_explain_cut(answer.text, cap_option))
    try:
        return request.parse(keep_whole(answer.text))
    except RecursionError:
        return ReplyFault("the reply is nested too deeply")
    except (ReplyFormatError, ValueError) as error:
        return ReplyFault(f"{_explain_cut(answer.text, cap_option)}: {error}" if answer.is_cut else str(error))


def _explain_cut(text: str, cap_option: str) -> str:
    return _LOOP if is_loop(text) else f"{_CUT}; raise {cap_option}"


def say_how_often(n_asked: int) -> str:
    if n_asked == MAX_ASKED:
        return f" (asked {n_asked} times; {NOT_ASKED_AGAIN})"
    return " (asked twice)" if n_asked == 2 else f" (asked {n_asked} times)" if n_asked > 2 else ""


def revive(request: ChatRequest[T], key: str, stored: StoredReply) -> ChatReply[T] | None:
    """Return a stored reply, or None if the `parse` of the request rejects it now."""
    value = judge(request, Completion(stored.text, stored.finish_reason), cap_option="")
    return None if isinstance(value, ReplyFault) else reply_of(stored, value, key, is_cached=True)


def reply_of(stored: StoredReply, value: T, key: str, is_cached: bool) -> ChatReply[T]:
    return ChatReply(
        text=stored.text,
        value=value,
        request_key=key,
        finish_reason=stored.finish_reason,
        prompt_tokens=stored.prompt_tokens,
        completion_tokens=stored.completion_tokens,
        seconds=stored.seconds,
        cost=stored.cost,
        is_cached=is_cached,
    )


@dataclass(frozen=True)
class StoredAttempts(Generic[T]):
    """The stored replies to a request and its corrections.

    Attributes:
        rejected: those that `parse` rejects, and why, in order.
        accepted: the first that it accepts now, as after a change of the parser; None without one.
        stored: the row of that reply.
    """

    rejected: list[tuple[Completion, str]]
    accepted: ChatReply[T] | None = None
    stored: StoredReply | None = None


def count_attempts(cache: ResponseCache, keys: Sequence[str]) -> list[int]:
    """Return how many replies to each request, by its key, and to its corrections are stored."""
    asked = cache.read(keys) if keys else {}
    corrections = {key: [correction_key(key, n) for n in range(1, MAX_ASKED)] for key in asked}
    stored = cache.read([one for some in corrections.values() for one in some]) if asked else {}
    return [(key in asked) + sum(one in stored for one in corrections.get(key, [])) for key in keys]


def read_attempts(cache: ResponseCache, request: ChatRequest[T], key: str, cap_option: str) -> StoredAttempts[T]:
    """Return the stored replies to a request and its corrections, judged (`judge`)."""
    keys = [correction_key(key, n) for n in range(MAX_ASKED)]
    stored = cache.read(keys)
    rejected: list[tuple[Completion, str]] = []
    for found in (stored[one] for one in keys if one in stored):
        answer = Completion(found.text, found.finish_reason)
        judged = judge(request, answer, cap_option)
        if not isinstance(judged, ReplyFault):
            return StoredAttempts(rejected, reply_of(found, judged, key, is_cached=True), found)
        rejected.append((answer, judged.reason))
    return StoredAttempts(rejected)
