"""Bodies of requests under the limits on their size, their number of values, and the time they may take.

Keep out: what a body means.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from starlette.types import Message, Receive

from graphrag_pipeline.serve.errors import ApiError, InvalidRequestError
from graphrag_pipeline.serve.limits import MAX_BODY_MARKS

_MARKS = (b",", b"[", b"{")
"""One of them is before every value of JSON, with at most a key between. Counting them takes microseconds."""
_MOST_DRAINED_BYTES = 16_000_000
_MOST_DRAINED_S = 2.0


def limited(receive: Receive, max_bytes: int, max_s: float) -> Receive:
    """Return `receive` that refuses a body over the limits, also one that announced no length.

    Args:
        max_bytes: of the whole body; its values are limited by `MAX_BODY_MARKS`.
        max_s: from now to its end; waiting for the end of the connection afterwards has no limit.
    """
    n_bytes = n_marks = 0
    is_whole = False
    ends = time.monotonic() + max_s

    async def read() -> Message:
        nonlocal n_bytes, n_marks, is_whole
        if is_whole:
            return await receive()
        try:
            async with asyncio.timeout(ends - time.monotonic()):
                message = await receive()
        except TimeoutError:
            raise _too_slow(max_s) from None
        piece = message.get("body", b"")
        n_bytes += len(piece)
        n_marks += sum(map(piece.count, _MARKS))
        is_whole = not message.get("more_body", False)
        if n_bytes > max_bytes or n_marks > MAX_BODY_MARKS:
            if not is_whole:
                await drain(receive)
            raise too_large(max_bytes) if n_bytes > max_bytes else _too_many()
        return message

    return read


async def drain(receive: Receive) -> None:
    """Read on after a refused body: a client that still sends would meet a reset connection, not the answer."""
    n_bytes = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_MOST_DRAINED_S):
            while n_bytes < _MOST_DRAINED_BYTES:
                message = await receive()
                n_bytes += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


def too_large(max_bytes: int) -> ApiError:
    """Return the error of a body over the limit."""
    return ApiError(413, "too_large", f"The body has more than {max_bytes:,} bytes.", "Send a smaller body.")


def _too_many() -> ApiError:
    return InvalidRequestError(f"The body has more than {MAX_BODY_MARKS:,} commas and brackets.", "Send fewer values.")


def _too_slow(max_s: float) -> ApiError:
    return ApiError(408, "too_slow", f"The body did not arrive within {max_s:g} s.", "Send it at once.")
