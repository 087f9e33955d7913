"""Requests that are made shorter until they fit the window of their model.

A model that finds a prompt too long says by how many tokens (`CallFailedError.n_excess`). The code that built the
prompt knows what it can do without. Keep out: windows (`endpoints/windows.py`), and the parts of a prompt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from graphrag_pipeline.models.ports import CallFailedError, ChatModel, ChatReply, ChatRequest

T = TypeVar("T")

MAX_SHORTENED = 3
"""Times that a request is shortened: once as a rule, again if the model counts many more tokens than this package."""


async def complete_within_window(
    model: ChatModel, request: ChatRequest[T], shorten: Callable[[int], ChatRequest[T] | None]
) -> tuple[ChatReply[T], int]:
    """Return the reply to a request, and the tokens by which its prompt was shortened.

    Args:
        shorten: returns the request with at least so many tokens less than at first; None if that is not possible.

    Raises:
        CallFailedError: the request got no usable reply, or cannot be short enough.
    """
    n_left_out = 0
    for _ in range(MAX_SHORTENED):
        try:
            return await model.complete(request), n_left_out
        except CallFailedError as error:
            n_left_out += error.n_excess
            shorter = shorten(n_left_out) if error.n_excess else None
            if shorter is None:
                raise
            request = shorter
    return await model.complete(request), n_left_out
