"""Frequency of words in English prose: the background against which the terms of a document are found.

The ranks are those of the bundled vocabulary of `bundled/static_embeddings`: BERT's word pieces, ordered by frequency
in Wikipedia and books, without the word pieces that the table leaves out. A vocabulary of prose is needed, because the
ranks of `capitalization.token_rank` come from a tokenizer that has also read source code.

Keep out: counts of one document (`word_uses.py`) and decisions (`concepts.py`).
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

ZIPF = 12.0
"""The n-th word of English is one in 12 n."""
UNKNOWN_RANK = 60_000
"""Rank of a word outside the vocabulary."""


@cache
def load_ranks() -> dict[str, int]:
    """Return word in lower case -> rank in English, 1 = commonest (about 21,000 words, read in 0.03 s)."""
    path = files("graphrag_pipeline") / "bundled" / "static_embeddings" / "tokenizer.json"
    vocabulary: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
    first = vocabulary["the"]
    return {word: number - first + 1 for word, number in vocabulary.items() if number >= first and word.isalpha()}


def english_rank(word: str) -> int | None:
    """Return the rank of a word in lower case, 1 = commonest; None for a rare word."""
    return load_ranks().get(word)


def expected_count(word: str, n_words: int) -> float:
    """Return how often English prose of `n_words` words has the word, by Zipf's law."""
    return n_words / (ZIPF * load_ranks().get(word, UNKNOWN_RANK))
