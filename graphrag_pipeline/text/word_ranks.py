"""Commonness of words: their rank in two bundled vocabularies, which are ordered by frequency.

The tokenizer's (o200k) tells small letters from capitals: if " Future" has a much higher rank than " future", the word
is common; if " London" has a much lower rank than " london", it is a name. BERT's has only prose (Wikipedia and books),
in small letters.

Keep out: what is made of the ranks (`engines/embedded/names/`, `indexing/graph/merge_proposals.py`).
"""

from __future__ import annotations

import json
from functools import cache, lru_cache
from importlib.resources import files

from graphrag_pipeline.text.tokens import load_encoding

UNKNOWN_RANK = 60_000
"""Rank in prose of a word outside the vocabulary."""
_COMMON_RATIO = 2.2  # between the ranks of a word with and without a capital


@lru_cache(maxsize=1 << 16)
def token_rank(word: str) -> int | None:
    """Return the rank of a word as written, 0 = commonest; None for a word of several tokens, which is rare."""
    tokens = load_encoding().encode_ordinary(" " + word)
    return tokens[0] if len(tokens) == 1 else None


@lru_cache(maxsize=1 << 16)
def is_common_word(key: str) -> bool:
    """Whether English writes a word (in upper case here) mostly without a capital; False for rare words."""
    small, capital = token_rank(key.lower()), token_rank(key.capitalize())
    return small is not None and (capital is None or capital > _COMMON_RATIO * small)


@cache
def load_prose_ranks() -> dict[str, int]:
    """Return word in small letters -> rank in English prose, 1 = commonest (about 21,000 words, read in 0.03 s)."""
    path = files("graphrag_pipeline") / "bundled" / "static_embeddings" / "tokenizer.json"
    vocabulary: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
    first = vocabulary["the"]
    return {word: number - first + 1 for word, number in vocabulary.items() if number >= first and word.isalpha()}
