"""Vectors by rule: each word is hashed to four signed places of the vector; the sum is scaled to length 1.

Equal inputs have equal vectors, and inputs that share words are near each other, in every dimension. A word of one to
three letters counts a third, instead of a list of stop words. A CJK character and a token id count as words.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Sequence

import numpy as np

_WORDS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_N_PLACES = 4


def embed(item: str | Sequence[int], dimensions: int) -> np.ndarray:
    """float32 (dimensions,), of length 1, of one text or one list of token ids."""
    words = split_words(item) if isinstance(item, str) else [str(token) for token in item]
    hashed = [_hash_word(word, dimensions) for word in words]
    places = np.array([place for places, _ in hashed for place in places], dtype=np.int64)
    weights = np.array([weight for _, weights in hashed for weight in weights])
    vector = np.bincount(places, weights, minlength=dimensions)
    length = float(np.linalg.norm(vector))
    if length == 0:
        vector[0] = length = 1.0
    return (vector / length).astype("<f4")


def split_words(text: str) -> list[str]:
    """The words of a text in lower case."""
    return _WORDS.findall(text.lower())


@functools.lru_cache(maxsize=65_536)
def _hash_word(word: str, dimensions: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Places in the vector, and what the word adds at each."""
    digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=4 * _N_PLACES).digest()
    hashes = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, len(digest), 4)]
    weight = 1.0 if len(word) > 3 or not word.isascii() else 1 / 3
    signed = tuple(weight if value >> 31 else -weight for value in hashes)
    return tuple(value % dimensions for value in hashes), signed
