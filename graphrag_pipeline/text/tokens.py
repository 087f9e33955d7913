"""Token counts with tiktoken, offline for the default encoding.

The ranks of `o200k_base` are in the package, so counting with it needs no download. tiktoken loads other encodings from
its cache or by a download. Special tokens are plain text: `<|endoftext|>` in a document is counted as written.

A long text is encoded in pieces of at most 50,000 characters, each cut before its last space. A token of tiktoken's
encodings never crosses the start of a space, so the sum is the exact count. A piece without a space is cut at the
limit, which can add one token per cut. The time is linear, and 1 MB of white space does not overflow tiktoken's stack.

For the same reason, the count of a text is the sum over its words, each with the space before it. The count of a word
is cached in the process, which is two to three times as fast.

Of many texts at once, each distinct word is counted once, and Arrow sums the words of each text: the same counts in a
third of the time for the texts of a whole index.

Keep out: limits of text units and prompts.
"""

from __future__ import annotations

import binascii
import functools
import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.errors import EncodingError, PipelineError

if TYPE_CHECKING:
    import tiktoken

MAX_CHARACTERS = 8_000_000
"""Characters that are split into words at once."""
_NO_CUT = -(1 << 40)
"""Count of a word that a text may not be cut after; a text with one has a negative sum."""

TokenCounter = Callable[[Sequence[str]], list[int]]
"""Number of tokens of each text, in order."""

DEFAULT_ENCODING = "o200k_base"
MAX_PIECE = 50_000  # characters encoded at once
MANY_TEXTS = 500
"""Texts from which they are counted together, each distinct word once."""
MAX_KNOWN_WORDS = 200_000
_UNKNOWN = -1
MAX_KNOWN_LENGTH = 32  # characters of a word; longer words are rarely repeated

_BUNDLED = Path(__file__).parents[1] / "bundled" / "tiktoken"
_RANKS = _BUNDLED / "fb374d419588a4632f3f557e76b4b70aebbca790"  # the file name of o200k_base in tiktoken's cache
_RANKS_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_CACHE_VARIABLE = "TIKTOKEN_CACHE_DIR"
_definition_lock = threading.Lock()  # while tiktoken reads our ranks in place of a download


def load_encoding(name: str = DEFAULT_ENCODING) -> tiktoken.Encoding:
    """Return a tiktoken encoding by name; it is loaded once.

    Raises:
        EncodingError: the name is unknown, or the ranks cannot be downloaded.
        PipelineError: the bundled ranks are damaged.
    """
    return _load(name)


@functools.cache  # not on `load_encoding`: a cache keeps a default and the same explicit argument apart
def _load(name: str) -> tiktoken.Encoding:
    import tiktoken

    if name == DEFAULT_ENCODING:
        return _load_bundled()
    try:
        return tiktoken.get_encoding(name)
    except (ValueError, OSError) as error:
        known = ", ".join(tiktoken.list_encoding_names())
        raise EncodingError(
            f"tiktoken cannot load the encoding {name!r} ({_first_line(error)})",
            f"{DEFAULT_ENCODING!r}, which needs no download, or to one of {known} on a machine with network access or "
            f"with {_CACHE_VARIABLE} set to a folder that holds its ranks",
        ) from error


def count_tokens(text: str, encoding: str = DEFAULT_ENCODING) -> int:
    """Return the number of tokens of one text."""
    return count_tokens_each([text], encoding)[0]


def count_tokens_each(texts: Sequence[str], encoding: str = DEFAULT_ENCODING) -> list[int]:
    """Return the number of tokens of each text, in order."""
    if not texts:
        return []  # loading an encoding costs 0.3 s and 70 MB
    counter = _counter_of(load_encoding(encoding))
    return counter.count_each(texts) if len(texts) < MANY_TEXTS else counter.count_many(texts)


def token_boundaries(text: str, encoding: str = DEFAULT_ENCODING) -> tuple[list[int], list[int]]:
    """Return the places in a text where a token starts and no character is cut.

    Returns:
        Two lists of equal length, ascending: the number of tokens before a place, and its character offset. The last
        place is the end of the text, so its first number is the number of tokens.
    """
    encoder = load_encoding(encoding)
    n_before, offsets, n_tokens, offset = [], [], 0, 0
    for piece in _pieces(text):
        for token in encoder.decode_tokens_bytes(encoder.encode_ordinary(piece)):
            if not _continues_character(token[0]):
                n_before.append(n_tokens)
                offsets.append(offset)
            n_tokens += 1
            offset += sum(not _continues_character(byte) for byte in token)
    return [*n_before, n_tokens], [*offsets, offset]


def _continues_character(byte: int) -> bool:
    return 0x80 <= byte < 0xC0  # UTF-8


class _NoCutError(Exception):
    """White space precedes a space, so a token may cross the start of that space."""


class _KnownWords(dict[str, int]):
    """Cache of token counts by word, counted with the text `before`; a full cache adds no words.

    Raises:
        _NoCutError: the text may not be cut after this word.
    """

    def __init__(self, encoding: tiktoken.Encoding, before: str) -> None:
        self._encode = encoding.encode_ordinary
        self._before = before

    def __missing__(self, word: str) -> int:
        if not word or word[-1].isspace():
            raise _NoCutError
        n_tokens = self.count(word)
        if len(word) <= MAX_KNOWN_LENGTH and len(self) < MAX_KNOWN_WORDS:
            self[word] = n_tokens
        return n_tokens

    def count(self, word: str) -> int:
        """Return the number of tokens of a word, whether the text may be cut after it or not."""
        return len(self._encode(self._before + word))


class _WordCounter:
    """Counter of the tokens of a text, word by word. Safe to share between threads."""

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self._encode = encoding.encode_ordinary
        self._opening = _KnownWords(encoding, "")
        self._opening[""] = 0  # for a text that begins with a space
        self._following = _KnownWords(encoding, " ")

    def count(self, text: str) -> int:
        """Return the number of tokens of a text of at most `MAX_PIECE` characters."""
        start, space, last = text.rpartition(" ")
        if not space or text[0] == ",":  # a table row: its long words are rarely repeated
            return len(self._encode(text))
        opening, *words = start.split(" ")
        try:
            n_tokens = self._opening[opening] + sum(map(self._following.__getitem__, words))
        except _NoCutError:
            return len(self._encode(text))
        is_word = last and not last[-1].isspace()  # else white space ends it: no cut after it
        return n_tokens + (self._following[last] if is_word else len(self._encode(space + last)))

    def count_each(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of texts of any length; equal texts are counted once."""
        counts: dict[str, int] = {}
        for text in texts:
            if text not in counts:
                counts[text] = self.count(text) if len(text) <= MAX_PIECE else sum(map(self.count, _pieces(text)))
        return [counts[text] for text in texts]

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the same for many texts at once: each distinct word is counted once."""
        counts = np.full(len(texts), _NO_CUT, dtype=np.int64)
        for part in _parts(texts):
            with suppress(UnicodeEncodeError):  # Arrow takes no lone surrogate
                counts[part] = self._sum_words(pa.array(texts[part], pa.string()))
        left = np.flatnonzero(counts < 0).tolist()
        counts[left] = self.count_each([texts[i] for i in left])
        return counts.tolist()

    def _sum_words(self, texts: pa.Array) -> np.ndarray:
        """Return the number of tokens of each text; a negative number if it is not the sum over the words.

        Very long texts and table rows are not split into words.
        """
        apart = pc.or_(pc.greater(pc.utf8_length(texts), MAX_PIECE), pc.starts_with(texts, ","))
        is_apart = np.asarray(apart)
        words = pc.split_pattern(pc.if_else(apart, "", texts) if is_apart.any() else texts, " ")
        bounds = np.asarray(words.offsets).astype(np.int64)
        first, last = bounds[:-1], bounds[1:] - 1
        encoded = words.flatten().dictionary_encode()
        rows, distinct = np.asarray(encoded.indices), encoded.dictionary.to_pylist()
        # The tokens of a word with the space before it, and at the start of a text; no token crosses the space behind
        # a word, unless the word is empty or ends in white space.
        following, can_cut = (np.array(found) for found in _count_words(distinct, self._following))
        inner = np.where(can_cut, following, _NO_CUT)
        opening, place = np.unique(rows[first], return_inverse=True)
        alone, is_cut = (
            np.array(found) for found in _count_words([distinct[row] for row in opening.tolist()], self._opening)
        )
        before = np.where(is_cut | (alone == 0), alone, _NO_CUT)[place]
        sums = np.add.reduceat(inner[rows], first) - inner[rows[first]] - inner[rows[last]] + following[rows[last]]
        return np.where(is_apart, _NO_CUT, np.where(first == last, alone[place], sums + before))


def _parts(texts: Sequence[str]) -> Iterator[slice]:
    """Yield slices of texts with few characters each."""
    start, n_characters = 0, 0
    for end, text in enumerate(texts, 1):
        n_characters += len(text)
        if n_characters >= MAX_CHARACTERS or end == len(texts):
            yield slice(start, end)
            start, n_characters = end, 0


def _count_words(words: Sequence[str], known: _KnownWords) -> tuple[list[int], list[bool]]:
    """Return the number of tokens of words, and whether a text may be cut after each."""
    counts, can_cut = list(map(known.get, words, repeat(_UNKNOWN))), [True] * len(words)
    for i in [i for i, n_tokens in enumerate(counts) if n_tokens == _UNKNOWN]:
        try:
            counts[i] = known[words[i]]
        except _NoCutError:
            counts[i], can_cut[i] = known.count(words[i]), False
    return counts, can_cut


@functools.cache
def _counter_of(encoding: tiktoken.Encoding) -> _WordCounter:
    return _WordCounter(encoding)


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
    """Load the default encoding as tiktoken defines it, with the ranks in the package, five times as fast."""
    import tiktoken
    from tiktoken_ext import openai_public  # type: ignore[import-untyped]

    ranks = _read_ranks()

    def load_ranks(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
        return ranks if expected_hash == _RANKS_SHA256 else load_others(url, expected_hash)

    with _definition_lock:
        load_others = openai_public.load_tiktoken_bpe
        openai_public.load_tiktoken_bpe = load_ranks
        try:
            definition = openai_public.o200k_base()
        finally:
            openai_public.load_tiktoken_bpe = load_others
    return tiktoken.Encoding(**definition)


def _read_ranks() -> dict[bytes, int]:
    """Read rank by token; a line of the file holds a token in base 64 and its rank."""
    try:
        data = _RANKS.read_bytes()
    except OSError:
        data = b""
    if hashlib.sha256(data).hexdigest() != _RANKS_SHA256:
        raise PipelineError(f"{_RANKS}: the bundled token ranks are missing or damaged; reinstall graphrag-pipeline")
    fields = data.split()
    return dict(zip(map(binascii.a2b_base64, fields[::2]), map(int, fields[1::2]), strict=True))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
