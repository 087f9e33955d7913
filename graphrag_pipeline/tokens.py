"""Counting tokens with tiktoken, offline for the default encoding.

The ranks of `o200k_base` ship with the package, so counting never downloads. Other encodings are loaded tiktoken's own
way (its cache, else a download). Text is always plain text: `<|endoftext|>` in a document is counted as written.

Rule for long text: it is encoded in pieces of at most 50,000 characters, each cut before the last space that it holds.
A token of tiktoken's encodings never spans the start of a space, so the sum is the exact count; a piece without a space
is cut at the limit, which can add a token per cut. That keeps time linear and keeps tiktoken from overflowing its stack
on a megabyte of white space.
"""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.errors import PipelineError

if TYPE_CHECKING:
    import tiktoken

DEFAULT_ENCODING = "o200k_base"
MAX_PIECE = 50_000  # characters encoded at once

_BUNDLED = Path(__file__).parent / "bundled" / "tiktoken"
_RANKS = _BUNDLED / "fb374d419588a4632f3f557e76b4b70aebbca790"  # tiktoken's cache name of o200k_base
_RANKS_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_CACHE_VARIABLE = "TIKTOKEN_CACHE_DIR"
_environment_lock = threading.Lock()


@functools.cache
def load_encoding(name: str = DEFAULT_ENCODING) -> tiktoken.Encoding:
    """A tiktoken encoding by name, loaded once.

    Raises:
        PipelineError: no encoding has this name, its ranks cannot be downloaded, or the bundled ranks are damaged.
    """
    import tiktoken

    if name == DEFAULT_ENCODING:
        return _load_bundled()
    try:
        return tiktoken.get_encoding(name)
    except (ValueError, OSError) as error:
        known = ", ".join(tiktoken.list_encoding_names())
        raise PipelineError(
            f"tokens: tiktoken cannot load the encoding {name!r} ({_first_line(error)}); set text_units.encoding to "
            f"{DEFAULT_ENCODING!r}, which needs no download, or to one of {known} on a machine with network access or "
            f"with {_CACHE_VARIABLE} set to a folder that holds its ranks"
        ) from error


def count_tokens(text: str, encoding: str = DEFAULT_ENCODING) -> int:
    """Number of tokens of one text."""
    return count_tokens_each([text], encoding)[0]


def count_tokens_each(texts: Sequence[str], encoding: str = DEFAULT_ENCODING) -> list[int]:
    """Number of tokens of each text, in order."""
    encode = load_encoding(encoding).encode_ordinary
    return [
        len(encode(text)) if len(text) <= MAX_PIECE else sum(len(encode(piece)) for piece in _pieces(text))
        for text in texts
    ]


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > MAX_PIECE:
        end = start + MAX_PIECE
        space = text.rfind(" ", start + 1, end)
        cut = start + len(text[start:space].rstrip(" ")) if space > 0 else start
        cut = cut if cut > start else end
        yield text[start:cut]
        start = cut
    yield text[start:]


def _load_bundled() -> tiktoken.Encoding:
    import tiktoken

    # Checked here because tiktoken deletes a cached file that does not match and downloads it again.
    try:
        is_intact = hashlib.sha256(_RANKS.read_bytes()).hexdigest() == _RANKS_SHA256
    except OSError:
        is_intact = False
    if not is_intact:
        raise PipelineError(f"{_RANKS}: the bundled token ranks are missing or damaged; reinstall graphrag-pipeline")
    with _environment_lock:
        before = os.environ.get(_CACHE_VARIABLE)
        os.environ[_CACHE_VARIABLE] = str(_BUNDLED)
        try:
            return tiktoken.get_encoding(DEFAULT_ENCODING)
        finally:
            if before is None:
                del os.environ[_CACHE_VARIABLE]
            else:
                os.environ[_CACHE_VARIABLE] = before


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
